"""What a real prefix cache serves of a request, measured on a real model."""
