"""What a file keeps: settings, the FK store, and what older versions wrote."""
