#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Test what procfs_query prints on a terminal."""

import os
import pty
import shutil

from util import ToolTest, command, find, lines_of, main, map_lines

# Characters that a terminal obeys, or that change the order of others.
CONTROLS = "[\0-\t\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"


class TerminalTest(ToolTest):
    """A method test_NAME is the test NAME."""

    def test_terminal_gets_lines_that_fit(self):
        path = f"{self.tmp}/{'0' * 100}/program"
        os.mkdir(os.path.dirname(path))
        target = self.start(shutil.copy(self.cat, path)).pid
        code = f"{find(target, 'r-xp', '/program').start:x}"

        def fits(width, work, ends, whole):
            out = self.without_colours(self.on_terminal(*work, of=target,
                                                        COLUMNS=str(width)))
            self.assertRegex(out, f"(?m){ends}$")
            self.assertLessEqual(max(map(len, lines_of(out))), width)
            self.assertIn(whole, self.run_tool(*work, of=target))

        cut = r"\.\.\.0*/program"
        for width, work in ((80, ["--list"]), (80, ["--sum"]), (80, [code]),
                            (120, ["--list", "-B"]), (120, ["--sum", "-B"]),
                            (120, ["-B", code])):
            fits(width, work, cut, f" {path}")
        out = self.on_terminal("--list", of=target, COLUMNS="300")
        self.assertEqual(lines_of(self.without_colours(out)), map_lines(target))
        os.unlink(path)
        fits(80, ["--deleted"], f" {cut}  {cut}", f" {path}  {path}\n")

    def test_colours_are_for_a_terminal_that_wants_them(self):
        self.assertIn("\033[32mr-xp\033[m", self.on_terminal("--list"))
        for no_colour in {"NO_COLOR": "1"}, {"TERM": "dumb"}:
            out = self.on_terminal("--list", **no_colour)
            self.assertIn("r-xp", out)
            self.assertNotIn("\033", out)
        self.assertIn("\033", self.on_terminal("--list", NO_COLOR=""))
        self.assertNotIn("\033", self.run_tool("--list"))
        self.assertNotIn("\033", self.on_terminal("--list", "--json"))

    def test_no_control_character_gets_to_a_terminal(self):
        path = shutil.copy(self.cat, f"{self.tmp}/gone \x1b[2J\n\u202e")
        gone = self.start(path).pid
        os.unlink(path)
        code = f"{find(self.odd, 'r.*', '/control ').start:x}"
        control = "/control ? ? ? ? ? ? ?\n"
        for of, work, shown, env in (
                ("odd", ["--list"], control, {}), ("odd", ["--sum"], control, {}),
                ("odd", ["--list"], "/escape?[2J\n", {}),
                ("odd", ["--list"], "/b?yte\n", {"LC_ALL": "C"}),
                ("odd", [code], control, {}), ("odd", ["-v", code], control, {}),
                (gone, ["--deleted"], r"/gone ?[2J\012?", {}),
                (gone, ["--build-ids"], r"/gone ?[2J\012?", {})):
            out = self.on_terminal(*work, of=of,
                                   **{"COLUMNS": "300", "LC_ALL": "C.UTF-8"} | env)
            self.assertNotRegex(self.without_colours(out), CONTROLS)
            self.assertIn(shown, out)
        for of, work, shown in (
                *(("odd", work, r"/control \u007f \u0080 \u009f \u202a \u202e \u2066 "
                   r'\u2069"') for work in (["--list"], ["--sum"], ["-v", code])),
                *((gone, [work], r"/gone \u001b[2J\\012\u202e")
                  for work in ("--deleted", "--build-ids"))):
            out = self.run_tool(*work, "--json", of=of)
            self.assertNotRegex(out, CONTROLS)
            self.assertIn(shown, out)
        self.assertIn("/escape\033[2J\n", self.run_tool("--list", of="odd"))

    def test_no_control_character_of_a_program_gets_to_a_terminal(self):
        program = shutil.copy(self.cat, f"{self.tmp}/control \033[2J")
        master, slave = pty.openpty()
        actor, watcher, _ = self.watch(COLUMNS="300", program=program, stdout=slave)
        self.addCleanup(watcher.wait)
        os.close(slave)
        with open(master, "r", encoding="utf-8") as terminal:
            terminal.readline()
            command(actor, "execute")
            line = next(line for line in terminal if "executed" in line)
        self.assertNotRegex(self.without_colours(line), CONTROLS)
        self.assertRegex(line, r"/control \?\[2J$")


if __name__ == "__main__":
    main(TerminalTest)
