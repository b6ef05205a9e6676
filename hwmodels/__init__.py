"""What hardware costs: stateless models that know no request and no clock."""
