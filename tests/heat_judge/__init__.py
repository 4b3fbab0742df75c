"""Heat's own engine as the judge of how Moorage reads templates."""
