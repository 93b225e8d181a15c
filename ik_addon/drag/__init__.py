"""Drag targets, poles and anything else that follows the 3D cursor."""
