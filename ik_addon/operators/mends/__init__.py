"""What puts right what stands in the way, at one click."""
