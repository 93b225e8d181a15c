"""What a file stores: settings and the FK store."""
