"""Studies: trials that Optuna draws and that processes or machines share, each counted once."""
