import Glibc
import Ground

/// The output of a command, to a terminal for people, or to a file or a pipe for programs.
struct Console: Sendable {
    /// True if standard output is a terminal.
    let isTerminal: Bool
    /// True if output is coloured.
    let isColoured: Bool
    /// True if progress is shown: standard error is a terminal that can move the cursor.
    let showsProgress: Bool

    /// Creates the console of this process.
    init(environment: [String: String]) {
        isTerminal = isatty(STDOUT_FILENO) == 1
        showsProgress = isatty(STDERR_FILENO) == 1 && environment["TERM"] != "dumb"
        // https://no-color.org: any non-empty value.
        let wantsNone = environment["NO_COLOR"].map { !$0.isEmpty } ?? false
        isColoured = isTerminal && !wantsNone && environment["TERM"] != "dumb"
    }

    /// The number of columns of a line; `nil` for no limit.
    var columns: Int? { isTerminal ? Self.size(of: STDOUT_FILENO)?.columns : nil }

    /// Returns the columns and rows of a terminal; `nil` if `descriptor` is none.
    static func size(of descriptor: CInt) -> (columns: Int, rows: Int)? {
        var size = winsize()
        guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else {
            return nil
        }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Prints lines to standard output.
    func print(_ lines: [TextLine]) {
        let text = lines.map { $0.rendered(isColoured: isColoured) + "\n" }.joined()
        Self.write(Array(text.utf8), to: STDOUT_FILENO)
    }

    /// Prints text for programs with a line break.
    func print(_ text: String) {
        Self.write(Array((text.hasSuffix("\n") ? text : text + "\n").utf8), to: STDOUT_FILENO)
    }

    /// Prints a line to standard error, after the name of the program.
    func printError(_ text: String) {
        Self.write(Array("nuthatch: \(text)\n".utf8), to: STDERR_FILENO)
    }

    /// Prints lines for people to standard error.
    func printNotice(_ lines: [String]) {
        Self.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: STDERR_FILENO)
    }

    // MARK: Progress

    /// Shows a line of progress in place of the former one, if ``showsProgress``; `line` receives
    /// the number of columns.
    func showProgress(_ line: (_ columnsMax: Int) -> TextLine) {
        guard showsProgress else { return }
        let columns = Self.size(of: STDERR_FILENO)?.columns ?? 80
        // The last column stays empty: some terminals begin a new line after it.
        let text = line(columns - 1).rendered(isColoured: isColoured)
        Self.write(Array("\r\(text)\u{1B}[K".utf8), to: STDERR_FILENO)
    }

    /// Clears the line of progress, if ``showsProgress``.
    func clearProgress() {
        guard showsProgress else { return }
        Self.write(Array("\r\u{1B}[K".utf8), to: STDERR_FILENO)
    }

    /// Writes all bytes, waiting while the reader is slow; returns false if it fails, as when the
    /// reader has closed.
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
