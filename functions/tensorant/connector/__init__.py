"""What a customer puts into its own AWS account: a policy, and a template that carries it."""
