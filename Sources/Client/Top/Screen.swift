import Glibc
import Ground
import Synchronization

/// The terminal in full-screen mode for the lifetime of this object: the alternate screen, no
/// cursor, and unbuffered keys.
///
/// There must be only one at a time, used on one thread.
final class Screen {
    /// The action that a signal requests.
    enum SignalAction {
        case resize
        /// Return to the shell until the process is continued.
        case suspend
        case terminate(CInt)
    }

    /// The descriptor of the keyboard; `nil` if there is none.
    let keyboard: CInt?
    /// The end of a pipe that becomes readable after a signal.
    let signalReadDescriptor: CInt
    private let signalWriteDescriptor: CInt
    /// The terminal's modes before this object.
    private var savedModes = termios()
    /// True while full-screen mode is on.
    private var isOn = false

    /// The write end of the pipe for signals; -1 for none.
    private static let activeSignalDescriptor = Atomic<CInt>(-1)
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH]

    /// Enters full-screen mode; `nil` if standard output is not a terminal, or no pipe can be
    /// opened.
    init?() {
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        var ends: [CInt] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        (signalReadDescriptor, signalWriteDescriptor) = (ends[0], ends[1])
        keyboard = isatty(STDIN_FILENO) == 1 ? STDIN_FILENO : nil
        Self.activeSignalDescriptor.store(signalWriteDescriptor, ordering: .sequentiallyConsistent)
        enter()
    }

    deinit {
        leave()
        Self.activeSignalDescriptor.store(-1, ordering: .sequentiallyConsistent)
        close(signalReadDescriptor)
        close(signalWriteDescriptor)
    }

    /// The columns and rows.
    var size: (columns: Int, rows: Int) { Console.size(of: STDOUT_FILENO) ?? (80, 24) }

    // MARK: Full-screen mode

    /// Enters full-screen mode and installs the signal handlers.
    private func enter() {
        for number in Self.signals {
            _ = signal(number) { number in
                // A write is the only safe action in a signal handler.
                var byte = UInt8(truncatingIfNeeded: number)
                let saved = errno
                _ = unsafe Glibc.write(
                    Screen.activeSignalDescriptor.load(ordering: .sequentiallyConsistent), &byte, 1)
                errno = saved
            }
        }
        if let keyboard {
            unsafe tcgetattr(keyboard, &savedModes)
            var raw = savedModes
            raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
            unsafe tcsetattr(keyboard, TCSADRAIN, &raw)
        }
        // Alternate screen, no cursor, no wrapping after the last column.
        write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l")
        isOn = true
    }

    /// Leaves full-screen mode.
    private func leave() {
        guard isOn else { return }
        isOn = false
        write("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        if let keyboard { unsafe tcsetattr(keyboard, TCSADRAIN, &savedModes) }
        for number in Self.signals { _ = signal(number, SIG_DFL) }
    }

    /// Leaves full-screen mode, suspends the process, and restores it when the process is
    /// continued.
    func suspend() {
        leave()
        raiseDefault(SIGTSTP)
        enter()
    }

    /// Leaves full-screen mode and ends the process by the signal.
    func terminate(by number: CInt) -> Never {
        leave()
        raiseDefault(number)
        exit(128 + number)
    }

    /// Raises a signal, whose default action must be in force.
    ///
    /// This thread may block signals, so it is raised for the process; another thread may handle it
    /// a moment later.
    private func raiseDefault(_ number: CInt) {
        kill(getpid(), number)
        BootClock.pause(.milliseconds(500))
    }

    // MARK: Input and output

    /// Returns the actions requested by signals since the last call.
    func pendingSignalActions() -> [SignalAction] {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe read(signalReadDescriptor, &bytes, bytes.count)
        return bytes.prefix(max(0, count)).map { byte in
            switch CInt(byte) {
            case SIGWINCH: .resize
            case SIGTSTP: .suspend
            case let number: .terminate(number)
            }
        }
    }

    /// Returns the pressed keys; `nil` at the end of input or without a keyboard.
    func keys() -> [TopKey]? {
        guard let keyboard else { return nil }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(keyboard, &bytes, bytes.count)
        guard count > 0 else { return count < 0 && errno == EINTR ? [] : nil }
        return TopKey.keys(Array(bytes[..<count]))
    }

    /// Replaces the contents of the screen.
    func show(_ lines: [TextLine], isColoured: Bool) {
        // Terminals with mode 2026 show the update at once; others ignore it.
        var text = "\u{1B}[?2026h\u{1B}[H"
        for (index, line) in lines.enumerated() {
            if index > 0 { text += "\r\n" }
            text += line.rendered(isColoured: isColoured) + "\u{1B}[K"
        }
        write(text + "\u{1B}[J\u{1B}[?2026l")
    }

    /// Writes text to the terminal.
    private func write(_ text: String) {
        Console.write(Array(text.utf8), to: STDOUT_FILENO)
    }
}

/// The action of a key in `nuthatch top`.
package enum TopKey: Hashable, Sendable {
    case quit
    case sort
    case pause
    /// Select the next node; all together after the last.
    case next
    /// Select the previous node.
    case previous
    case help
    /// Show the next view; the overview after the last.
    case nextView
    /// Select all nodes and the overview, or close the help.
    case escape

    /// Returns the keys of bytes that a terminal has sent together, without unknown ones.
    package static func keys(_ bytes: [UInt8]) -> [TopKey] {
        var keys: [TopKey] = []
        var rest = bytes[...]
        while let first = rest.first {
            if first == 0x1B {
                let (key, count) = escaped(rest)
                if let key { keys.append(key) }
                rest = rest.dropFirst(count)
            } else {
                if let key = plain(first) { keys.append(key) }
                rest = rest.dropFirst()
            }
        }
        return keys
    }

    /// Returns the key of a single byte.
    private static func plain(_ byte: UInt8) -> TopKey? {
        switch byte {
        // Ctrl-C and Ctrl-D if the terminal does not translate them.
        case UInt8(ascii: "q"), UInt8(ascii: "Q"), 0x03, 0x04: .quit
        case UInt8(ascii: "s"): .sort
        case UInt8(ascii: "p"), UInt8(ascii: " "): .pause
        case UInt8(ascii: "n"), UInt8(ascii: "j"), 0x09: .next
        case UInt8(ascii: "N"), UInt8(ascii: "k"): .previous
        case UInt8(ascii: "?"), UInt8(ascii: "h"): .help
        case UInt8(ascii: "v"): .nextView
        default: nil
        }
    }

    /// Parses a control sequence (ECMA-48 §5.4) and returns its length; the escape key alone if
    /// none follows.
    private static func escaped(_ bytes: ArraySlice<UInt8>) -> (TopKey?, Int) {
        let body = bytes.dropFirst()
        guard let kind = body.first, kind == UInt8(ascii: "[") || kind == UInt8(ascii: "O") else {
            return (.escape, 1)
        }
        let end = body.dropFirst().firstIndex { (0x40...0x7E).contains($0) }
        guard let end else { return (nil, bytes.count) }
        let count = end - bytes.startIndex + 1
        switch bytes[end] {
        case UInt8(ascii: "B"), UInt8(ascii: "C"): return (.next, count)
        case UInt8(ascii: "A"), UInt8(ascii: "D"), UInt8(ascii: "Z"): return (.previous, count)
        default: return (nil, count)
        }
    }

    /// The keys and the columns of the screen in words.
    static let helpLines: [TextLine] = {
        var pairs = KeyValueTable()
        pairs.append("q, Ctrl-C", "quit")
        pairs.append("v", "next view: conditions, origins, sites, members, certificates")
        pairs.append("s", "sort nodes: as given, requests, fewest hits, p99, memory, origin")
        pairs.append("p, space", "pause; no node is queried")
        pairs.append("n, Tab, ↓", "next node: only its traffic, images and purges")
        pairs.append("N, ↑", "previous node")
        pairs.append("Esc", "all nodes together, and the overview")
        pairs.append("?, h", "open or close this help")
        return pairs.lines() + [
            TextLine(),
            TextLine(
                "Rates, latencies and ratios are of the last 5 s. HIT: of the requests that the"),
            TextLine(
                "cache could answer, those the origin gave no body for; BYTES: the same of bytes."),
            TextLine("ORIG/S: fetches from origins. LAG: purges that others know a node lacks."),
        ]
    }()
}
