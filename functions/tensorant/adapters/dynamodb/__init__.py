"""The record in one DynamoDB table."""
