"""The connector: what a customer deploys in its own account, with CDK. The API gives the same as a plain template."""
