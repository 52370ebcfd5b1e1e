"""What Phoenix and MLflow make of our spans: their real servers, asked through their own interfaces."""
