import Glibc
import Ground

/// Takes what `nuthatch get` gets: to standard output as it comes, or into a file that is there
/// only when it is whole.
final class BodyOutput {
    private let path: String?
    private let console: Console
    private let startedAt = BootClock.now()
    private var descriptor: CInt = -1
    private var nextProgressAt: Instant
    /// Bytes of the body so far.
    private(set) var byteCount: UInt64 = 0
    /// What an answer that says no says of it.
    private(set) var problem: [UInt8] = []
    /// Why what comes cannot be put where it was to be.
    private(set) var error: CommandError?

    private static let problemBytesMax = 64 << 10
    /// Progress is shown of what takes longer.
    private static let progressAfter = Interval.milliseconds(300)
    private static let progressEvery = Interval.milliseconds(100)

    init(_ path: String?, _ console: Console) {
        self.path = path
        partPath = path.map(Self.partPath)
        self.console = console
        nextProgressAt = startedAt + Self.progressAfter
    }

    deinit {
        guard descriptor >= 0 else { return }
        close(descriptor)
        if let partPath, partPath != path { unsafe unlink(partPath) }
    }

    /// What is written first, and becomes the file once it is whole; the path itself where that is
    /// a link, a device or a pipe, which nothing may take the place of.
    private let partPath: String?

    private static func partPath(_ path: String) -> String {
        var facts = stat()
        let isThere = unsafe lstat(path, &facts) == 0
        let isFile = facts.st_mode & S_IFMT == S_IFREG
        return isThere && !isFile ? path : path + ".part"
    }

    func write(_ piece: ArraySlice<UInt8>, of response: NodeResponse) throws(ExchangeError) {
        guard response.isSuccess else {
            problem += piece.prefix(Self.problemBytesMax - problem.count)
            return
        }
        byteCount += UInt64(piece.count)
        if partPath != nil { try open() }
        guard Console.write(Array(piece), to: partPath == nil ? STDOUT_FILENO : descriptor) else {
            throw recordError(errno)
        }
        showProgress(response)
    }

    /// The answer is whole.
    func finish() throws(CommandError) {
        guard let path, let partPath else { return }
        do throws(ExchangeError) {
            try open()
            let isClosed = close(descriptor) == 0
            descriptor = -1
            guard isClosed, partPath == path || (unsafe rename(partPath, path)) == 0 else {
                throw recordError(errno)
            }
        } catch {
            throw self.error ?? CommandError(.refused, path)
        }
    }

    private func open() throws(ExchangeError) {
        guard descriptor < 0, let partPath else { return }
        descriptor = unsafe Glibc.open(partPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw recordError(errno) }
    }

    private func recordError(_ code: CInt) -> ExchangeError {
        let why = unsafe String(cString: strerror(code))
        error = CommandError(.refused, "\(path ?? "standard output"): \(why)")
        return .system(code)
    }

    private func showProgress(_ response: NodeResponse) {
        let now = BootClock.now()
        guard partPath != nil, now >= nextProgressAt else { return }
        nextProgressAt = now + Self.progressEvery
        let whole = response["content-length"].flatMap { UInt64($0) }
        let seconds = Double((now - startedAt).milliseconds) / 1000
        console.showProgress { columnsMax in
            ProgressLine.line(
                "getting", share: whole.map { Double(byteCount) / Double(max(1, $0)) },
                note:
                    "\(NumberFormat.bytes(byteCount)), "
                    + "\(NumberFormat.byteRate(Double(byteCount) / seconds))",
                columnsMax: columnsMax)
        }
    }
}
