#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test procfs_query --interval."""

import datetime
import os
import re
import signal
import subprocess
import time
from subprocess import PIPE

from util import (METHODS, ToolTest, as_text, build_id_of, command, main, maps, needs,
                  stop)

# ISO 8601, with milliseconds and zone.
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[-+]\d\d:\d\d"


class WatchTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def ends_with(self, actor, watcher, lines):
        """The process exits, and the tool with status 0; return the last line."""
        actor.kill()
        actor.wait()
        *_, last = lines
        self.assertEqual(watcher.wait(), 0)
        return last

    @needs("readelf")
    def test_interval_tells_what_has_changed(self):
        span, none = "10000000-10002000", f"{'-':40} "
        for method, args, build_id in (*((method, (), "") for method in METHODS),
                                       *((method, ("-B",), build_id_of(self.cat) + " ")
                                         for method in METHODS)):
            before = datetime.datetime.now(datetime.timezone.utc)
            actor, watcher, lines = self.watch(method, *args, TZ="IST-5:30")
            seen = [next(lines)]
            self.assertRegex(seen[0], f"^{TIME}   {len(maps(actor.pid))} mappings\n$")
            self.assertEqual(seen[0][23:29], "+05:30")
            # Times are rounded down to a millisecond.
            when = datetime.datetime.fromisoformat(seen[0][:29])
            self.assertLess(before - datetime.timedelta(milliseconds=1), when)
            self.assertLess(when, datetime.datetime.now(datetime.timezone.utc))

            def until(change):
                while not re.fullmatch(f"{TIME} {change}\n", seen[-1]):
                    seen.append(next(lines))

            old, new = (f"{span} {mode} 00000000 00:00 0 +{none if args else ''}"
                        for mode in ("r--p", "---p"))
            for what, changes in (("map", [rf"\+ {old}"]),
                                  ("protect", [f"< {old}", f"> {new}"]),
                                  ("unmap", [f"- {new}"])):
                command(actor, what)
                for change in changes:
                    until(change)
            self.assertEqual(sum(span in line for line in seen), 4, seen)
            command(actor, "execute")
            until(rf"\* executed, \d+ mappings: {self.cat}")
            until(rf"\+ .* r-xp .* {build_id}{self.cat}")
            self.assertRegex(self.ends_with(actor, watcher, lines),
                             rf"^{TIME} \* exited\n$")

    def test_interval_in_json_is_an_object_a_line(self):
        actor, watcher, lines = self.watch("--json")
        objects = map(self.valid, lines)

        def until(event, key=None):
            for found in objects:
                self.assertEqual(found["pid"], actor.pid)
                self.assertRegex(found["time"], f"^{TIME}$")
                if found["event"] == event and (
                        not key or found[key]["start"] == "0x10000000"):
                    return found

        self.assertEqual(until("first")["mappings"], len(maps(actor.pid)))
        for what, event, key in (("map", "appeared", "is"),
                                 ("protect", "changed", "was"),
                                 ("unmap", "vanished", "was")):
            command(actor, what)
            until(event, key)
        command(actor, "execute")
        self.assertEqual(until("executed")["program"], self.cat)
        self.assertEqual(self.ends_with(actor, watcher, objects)["event"], "exited")

    def test_interval_ends_with_its_reader(self):
        _, watcher, lines = self.watch()
        next(lines)
        watcher.stdout.close()
        self.assertEqual(watcher.wait(), -signal.SIGPIPE)

    def test_interval_skips_what_it_missed(self):
        # It allocates by mmap(2), so that it finds a change in itself at each look.
        watcher = subprocess.Popen(self.argv(("-T", "--list", "-i", "0.05"), "self"),
                                   stdout=PIPE,
                                   env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "1"})
        self.addCleanup(stop, watcher)
        looks = []

        def look(nr):
            while len(looks) < nr:
                line = as_text(watcher.stdout.readline())
                when = datetime.datetime.fromisoformat(re.match(TIME, line)[0])
                if looks[-1:] != [when]:
                    looks.append(when)

        look(3)
        watcher.send_signal(signal.SIGSTOP)
        time.sleep(1)
        watcher.send_signal(signal.SIGCONT)
        look(10)
        # No two looks are in one interval. Times are rounded down to a millisecond.
        for first, fourth in zip(looks, looks[3:]):
            self.assertGreaterEqual(fourth - first, datetime.timedelta(seconds=0.099))


if __name__ == "__main__":
    main(WatchTest)
