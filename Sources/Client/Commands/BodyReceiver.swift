import Glibc
import Ground

/// Takes what `nuthatch get` gets: to standard output as it comes, or into a file that is there
/// only when it is whole.
final class BodyReceiver {
    private let path: String?
    private let console: Console
    private let beganAt = SystemClock.now()
    private var descriptor: CInt = -1
    private var shownAt: Instant
    /// Bytes of the body so far.
    private(set) var count: UInt64 = 0
    /// What an answer that says no says of it.
    private(set) var problem: [UInt8] = []
    /// Why what comes cannot be put where it was to be.
    private(set) var fault: CommandFault?

    private static let problemBytesMax = 64 << 10
    /// Progress is shown of what takes longer.
    private static let progressAfter = Interval.milliseconds(300)
    private static let progressEvery = Interval.milliseconds(100)

    init(_ path: String?, _ console: Console) {
        self.path = path
        partPath = path.map(Self.partPath)
        self.console = console
        shownAt = beganAt + Self.progressAfter
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

    func take(_ piece: ArraySlice<UInt8>, of answer: Answer) throws(AskingFailure) {
        guard answer.isSuccess else {
            problem += piece.prefix(Self.problemBytesMax - problem.count)
            return
        }
        count += UInt64(piece.count)
        if partPath != nil { try open() }
        guard Console.write(Array(piece), to: partPath == nil ? STDOUT_FILENO : descriptor) else {
            throw fail(errno)
        }
        show(answer)
    }

    /// The answer is whole.
    func finish() throws(CommandFault) {
        guard let path, let partPath else { return }
        do throws(AskingFailure) {
            try open()
            let isClosed = close(descriptor) == 0
            descriptor = -1
            guard isClosed, partPath == path || (unsafe rename(partPath, path)) == 0 else {
                throw fail(errno)
            }
        } catch {
            throw fault ?? CommandFault(.refused, path)
        }
    }

    private func open() throws(AskingFailure) {
        guard descriptor < 0, let partPath else { return }
        descriptor = unsafe Glibc.open(partPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw fail(errno) }
    }

    private func fail(_ code: CInt) -> AskingFailure {
        let why = unsafe String(cString: strerror(code))
        fault = CommandFault(.refused, "\(path ?? "standard output"): \(why)")
        return .system(code)
    }

    private func show(_ answer: Answer) {
        let now = SystemClock.now()
        guard partPath != nil, now >= shownAt else { return }
        shownAt = now + Self.progressEvery
        let whole = answer["content-length"].flatMap { UInt64($0) }
        let seconds = Double((now - beganAt).milliseconds) / 1000
        console.show { columnsMax in
            ProgressLine.line(
                "getting", share: whole.map { Double(count) / Double(max(1, $0)) },
                note: "\(Figures.bytes(count)), \(Figures.byteRate(Double(count) / seconds))",
                columnsMax: columnsMax)
        }
    }
}
