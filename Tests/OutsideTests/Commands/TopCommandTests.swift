import Foundation
import Glibc
import Harness
import Testing

extension Outside {
    @Suite("nuthatch top on a terminal")
    struct TopCommandTests {
        private static let (enter, leave) = ("\u{1B}[?1049h", "\u{1B}[?1049l")

        private func top(_ node: NodeProcess) throws -> PseudoTerminal {
            let terminal = try PseudoTerminal(
                try NodeProcess.binary(),
                ["top", "--interval", "200ms", "--node", "127.0.0.1:\(node.adminPort)"],
                columns: 90, rows: 24)
            #expect(terminal.shows("one node, not in a cluster"))
            return terminal
        }

        @Test("top uses the whole screen, follows its size, and restores it at the end")
        func screen() throws {
            let node = try NodeProcess()
            let terminal = try top(node)
            #expect(terminal.text.contains(Self.enter) && !terminal.isCooked)
            #expect(terminal.shows("no image was requested often"))
            terminal.press("?")
            #expect(terminal.shows("pause; no node is queried"))
            terminal.press("s")
            #expect(terminal.shows("sort: requests"))
            terminal.press("?vv")
            #expect(terminal.shows("no origins"))
            terminal.press("\u{1B}")
            // The column appears only on wider terminals.
            #expect(!terminal.text.contains("KEYS"))
            terminal.resize(columns: 130, rows: 30)
            terminal.signal(SIGWINCH)
            #expect(terminal.shows("KEYS"))
            #expect(!terminal.text.contains(Self.leave))
            terminal.press("q")
            #expect(terminal.ending == 0)
            #expect(terminal.shows(Self.leave) && terminal.isCooked)
        }

        @Test("A node that stops responding is shown as silent until it is back")
        func silent() throws {
            let node = try NodeProcess()
            let terminal = try top(node)
            #expect(terminal.shows("ready"))
            node.kill()
            #expect(terminal.shows("silent") && terminal.shows("no node responds"))
            #expect(terminal.shows("critical"))
            terminal.press("q")
            #expect(terminal.ending == 0)
        }

        @Test(
            "A signal ends top and restores the terminal",
            arguments: [(SIGINT, 0), (SIGTERM, -SIGTERM), (SIGHUP, -SIGHUP)] as [(CInt, CInt)])
        func signals(number: CInt, ending: CInt) throws {
            let node = try NodeProcess()
            let terminal = try top(node)
            terminal.signal(number)
            #expect(terminal.ending == ending)
            #expect(terminal.shows(Self.leave) && terminal.isCooked)
        }

        @Test("When suspended, top restores the terminal, and takes it again on resume")
        func suspended() throws {
            let node = try NodeProcess()
            let terminal = try top(node)
            terminal.signal(SIGTSTP)
            #expect(terminal.shows(Self.leave))
            terminal.signal(SIGCONT)
            #expect(terminal.shows(Self.enter, times: 2))
            terminal.press("q")
            #expect(terminal.ending == 0 && terminal.isCooked)
        }
    }
}
