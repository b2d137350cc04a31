"""The learners behind the metrics, fast enough to score every trained model."""
