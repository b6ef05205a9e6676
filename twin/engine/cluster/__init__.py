"""The cluster around the engine cores: replicas that come and go, and who sends what to whom."""
