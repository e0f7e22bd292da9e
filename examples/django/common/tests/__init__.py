"""Tests of the outbox, on a real PostgreSQL and with the real program: manage.py test."""
