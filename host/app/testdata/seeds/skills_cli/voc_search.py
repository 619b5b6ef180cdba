import json
import sys

given = json.load(sys.stdin)["input"]
hits = [{"text": given["query"], "score": 0.9, "tags": ["payment"], "source": "app"}]
print(json.dumps({"success": True, "data": {"results": hits[: given.get("top_k", 5)]}, "error": None, "token_usage": 1500, "duration_ms": 3}))
