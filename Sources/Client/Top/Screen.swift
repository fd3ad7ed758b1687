import Glibc
import Ground
import Synchronization

/// The whole of the terminal, for as long as this lives: another screen than the shell's, no
/// cursor, and keys that are read one by one.
///
/// One at a time; used on one thread.
final class Screen {
    /// What a signal has asked for.
    enum SignalAction {
        case resize
        /// To the shell, until it is called back.
        case suspend
        case terminate(CInt)
    }

    /// Where keys come from; nil if nobody can press any.
    let keyboard: CInt?
    /// Can be read after a signal.
    let signalReadDescriptor: CInt
    private let signalWriteDescriptor: CInt
    private var savedModes = termios()
    private var isOn = false

    /// Where signals are told: the end of a pipe that is written to.
    private static let activeSignalDescriptor = Atomic<CInt>(-1)
    private static let signals = [SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH]

    /// Nil if standard output is no terminal.
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

    /// Columns and lines.
    var size: (columns: Int, rows: Int) { Console.size(of: STDOUT_FILENO) ?? (80, 24) }

    // MARK: Coming and going

    private func enter() {
        for number in Self.signals {
            _ = signal(number) { number in
                // The only thing that is safe here.
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
        // Another screen, no cursor, no new line behind the last column.
        write("\u{1B}[?1049h\u{1B}[?25l\u{1B}[?7l")
        isOn = true
    }

    private func leave() {
        guard isOn else { return }
        isOn = false
        write("\u{1B}[?7h\u{1B}[?25h\u{1B}[?1049l")
        if let keyboard { unsafe tcsetattr(keyboard, TCSADRAIN, &savedModes) }
        for number in Self.signals { _ = signal(number, SIG_DFL) }
    }

    /// Gives the terminal back, and returns when the shell has called this back.
    func suspend() {
        leave()
        raiseDefault(SIGTSTP)
        enter()
    }

    /// Gives the terminal back, and ends the process as the signal would have.
    func terminate(by number: CInt) -> Never {
        leave()
        raiseDefault(number)
        exit(128 + number)
    }

    /// Has the signal do what it does by itself.
    ///
    /// Threads such as this one may block signals: it is for the whole process, some other thread
    /// of which takes it a moment later.
    private func raiseDefault(_ number: CInt) {
        kill(getpid(), number)
        BootClock.pause(.milliseconds(500))
    }

    // MARK: In and out

    /// What signals have asked for since this was asked last.
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

    /// The keys that were pressed; nil if there is nobody any more.
    func keys() -> [TopKey]? {
        guard let keyboard else { return nil }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(keyboard, &bytes, bytes.count)
        guard count > 0 else { return count < 0 && errno == EINTR ? [] : nil }
        return TopKey.keys(Array(bytes[..<count]))
    }

    /// Shows `lines` in place of what was there.
    func show(_ lines: [TextLine], isColoured: Bool) {
        // Terminals that can show all of it at once (mode 2026); others ignore that.
        var text = "\u{1B}[?2026h\u{1B}[H"
        for (index, line) in lines.enumerated() {
            if index > 0 { text += "\r\n" }
            text += line.rendered(isColoured: isColoured) + "\u{1B}[K"
        }
        write(text + "\u{1B}[J\u{1B}[?2026l")
    }

    private func write(_ text: String) {
        Console.write(Array(text.utf8), to: STDOUT_FILENO)
    }
}

/// What a key that is pressed in `nuthatch top` asks for.
package enum TopKey: Hashable, Sendable {
    case quit
    case sort
    case pause
    /// The next node, then all together.
    case next
    case previous
    case help
    /// Back to all nodes, or out of help.
    case escape

    /// The keys whose bytes a terminal has sent together; others are left out.
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

    private static func plain(_ byte: UInt8) -> TopKey? {
        switch byte {
        // Ctrl-C and Ctrl-D, where the terminal does not make signals of them.
        case UInt8(ascii: "q"), UInt8(ascii: "Q"), 0x03, 0x04: .quit
        case UInt8(ascii: "s"): .sort
        case UInt8(ascii: "p"), UInt8(ascii: " "): .pause
        case UInt8(ascii: "n"), UInt8(ascii: "j"), 0x09: .next
        case UInt8(ascii: "N"), UInt8(ascii: "k"): .previous
        case UInt8(ascii: "?"), UInt8(ascii: "h"): .help
        default: nil
        }
    }

    /// A control sequence (ECMA-48 §5.4) and its length; the escape key alone if none follows.
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
}
