import Foundation
import Glibc
import Harness

/// A pseudo-terminal (pty(7)) with a program on it, and the program's output so far.
final class PseudoTerminal {
    private let master: CInt
    private let slave: FileHandle
    private let process = Process()
    private let shown = LockedBox<[UInt8]>([])

    // TIOCSPTLCK and TIOCGPTN, which Swift does not import (ioctl_tty(2)).
    private static let (setLock, getNumber) = (UInt(0x4004_5431), UInt(0x8004_5430))

    /// The error for a system without a free terminal.
    struct Missing: Error {}

    init(_ path: String, _ arguments: [String], columns: UInt16, rows: UInt16) throws {
        master = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (isLocked, number) = (CInt(0), CUnsignedInt(0))
        guard master >= 0, unsafe ioctl(master, Self.setLock, &isLocked) == 0,
            unsafe ioctl(master, Self.getNumber, &number) == 0,
            let slave = FileHandle(forUpdatingAtPath: "/dev/pts/\(number)")
        else { throw Missing() }
        self.slave = slave
        resize(columns: columns, rows: rows)
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = ["TERM": "xterm-256color", "PATH": "/usr/bin:/bin"]
        process.standardInput = slave
        process.standardOutput = slave
        process.standardError = slave
        try process.run()
        Thread.detachNewThread { [master, shown] in
            var piece = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = unsafe read(master, &piece, piece.count)
                // All other descriptors of the terminal are closed.
                guard count > 0 else { return }
                shown.change { $0 += piece[..<count] }
            }
        }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        close(master)
    }

    /// All output so far.
    var text: String { String(decoding: shown.value, as: UTF8.self) }

    /// True once the output contains `words` at least `times` times.
    func shows(_ words: String, times: Int = 1) -> Bool {
        Deadline.seconds(20).waitUntil { text.components(separatedBy: words).count > times }
    }

    func press(_ keys: String) {
        let bytes = Array(keys.utf8)
        _ = unsafe write(master, bytes, bytes.count)
    }

    func signal(_ number: CInt) { kill(process.processIdentifier, number) }

    func resize(columns: UInt16, rows: UInt16) {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(master, UInt(TIOCSWINSZ), &size)
    }

    /// True if the terminal is in line mode with echo, as a shell sets it.
    var isCooked: Bool {
        var modes = termios()
        unsafe tcgetattr(slave.fileDescriptor, &modes)
        return modes.c_lflag & tcflag_t(ICANON | ECHO) == tcflag_t(ICANON | ECHO)
    }

    /// The exit status, or the ending signal as a negative number; `nil` while the program runs.
    var ending: Int32? {
        guard Deadline.seconds(20).waitUntil({ !process.isRunning }) else { return nil }
        let isSignal = process.terminationReason == .uncaughtSignal
        return isSignal ? -process.terminationStatus : process.terminationStatus
    }
}
