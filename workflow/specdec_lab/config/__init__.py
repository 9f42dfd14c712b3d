"""The configuration: pydantic models as the one source, strict YAML, and the canonical specs that come out of them."""
