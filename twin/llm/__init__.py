"""Networks: their facts, memory, operations and step times."""
