"""The AWS half of the embedded cloud: moto, with each defect that matters here mended, one module per service."""
