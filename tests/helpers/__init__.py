"""What several test files share: `from tests.helpers.ragged import batch`."""
