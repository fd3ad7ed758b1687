import Glibc
import Ground

/// Where a command writes: people read it on a terminal, programs read it from a file or a pipe.
struct Console: Sendable {
    /// Standard output is a terminal.
    let isTerminal: Bool
    let isColoured: Bool
    /// Standard error is a terminal, on which progress can be shown.
    let showsProgress: Bool

    /// The console of this process, in `environment`.
    init(environment: [String: String]) {
        isTerminal = isatty(STDOUT_FILENO) == 1
        showsProgress = isatty(STDERR_FILENO) == 1 && environment["TERM"] != "dumb"
        // https://no-color.org: whatever it says, if it says something.
        let wantsNone = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        isColoured = isTerminal && !wantsNone && environment["TERM"] != "dumb"
    }

    /// Columns that a line may have; nil for any number.
    var columns: Int? { isTerminal ? Self.size(of: STDOUT_FILENO)?.columns : nil }

    /// Columns and lines of the terminal that `descriptor` is.
    static func size(of descriptor: CInt) -> (columns: Int, rows: Int)? {
        var size = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return nil
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    func print(_ lines: [TextLine]) {
        let text = lines.map { $0.rendered(isColoured: isColoured) + "\n" }.joined()
        Self.write(Array(text.utf8), to: STDOUT_FILENO)
    }

    /// What is for programs, with a line's end.
    func print(_ text: String) {
        Self.write(Array((text.hasSuffix("\n") ? text : text + "\n").utf8), to: STDOUT_FILENO)
    }

    func printError(_ text: String) {
        Self.write(Array("nuthatch: \(text)\n".utf8), to: STDERR_FILENO)
    }

    /// What is for people, beside what is printed.
    func printNotice(_ lines: [String]) {
        Self.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: STDERR_FILENO)
    }

    // MARK: Progress

    /// Shows `line` in place of what was shown before; `line` gets the columns that there are.
    func showProgress(_ line: (_ columnsMax: Int) -> TextLine) {
        guard showsProgress else { return }
        let columns = Self.size(of: STDERR_FILENO)?.columns ?? 80
        // The last column is left free: some terminals begin a new line behind it.
        let text = line(columns - 1).rendered(isColoured: isColoured)
        Self.write(Array("\r\(text)\u{1B}[K".utf8), to: STDERR_FILENO)
    }

    /// Takes away what was shown.
    func clearProgress() {
        guard showsProgress else { return }
        Self.write(Array("\r\u{1B}[K".utf8), to: STDERR_FILENO)
    }

    /// Writes all of it, unless nobody reads it any more.
    @discardableResult
    static func write(_ bytes: [UInt8], to descriptor: CInt) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { bytes in
                unsafe Glibc.write(descriptor, bytes.baseAddress, bytes.count)
            }
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN {
                var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = unsafe poll(&entry, 1, -1)
                continue
            }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
