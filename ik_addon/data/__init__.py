"""What a file stores: settings, the FK store, and data of older versions."""
