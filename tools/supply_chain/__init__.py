"""The supply chain: components of locks and images, their licences and their known vulnerabilities."""
