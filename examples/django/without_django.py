"""Emits an event from Python without Django, into the shipped table: python3 without_django.py DATABASE_URL."""
import json
import sys
import uuid

import psycopg2

connection = psycopg2.connect(sys.argv[1])
with connection, connection.cursor() as cursor:  # one transaction
    cursor.execute("CREATE TABLE IF NOT EXISTS accounts (email text PRIMARY KEY)")
    cursor.execute("INSERT INTO accounts (email) VALUES (%s)", ["grace@example.com"])
    cursor.execute(
        """INSERT INTO outbox_event (id, aggregate_type, aggregate_id, event_type, payload, idempotency_key)
        VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (event_type, idempotency_key) DO NOTHING""",
        [str(uuid.uuid4()), "User", "8", "user.created", json.dumps({"email": "grace@example.com"}), "signup-8"],
    )
connection.close()
