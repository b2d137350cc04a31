"""Write the outputs of commands in docs/results.md anew: ``python tests/docs/update_results.py``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from results_page import PAGE, outputs, updated

if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    new = updated(text)
    if new != text:
        PAGE.write_text(new, encoding="utf-8")
    print(f"{PAGE}: {len(outputs(new))} outputs, {'rewritten' if new != text else 'as they were'}")
