"""Place and key targets and poles, and switch them between spaces."""
