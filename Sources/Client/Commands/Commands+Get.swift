import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry

/// What is to be got where clients get it.
package struct GetArguments: Sendable {
    package var url: String
    /// Nil for the node of this machine.
    package var base: String?
    /// The URL is that of a site, and its host the site's.
    package var isOfSite = false
    /// Nil for standard output.
    package var output: String?
    /// What is said of it, and not it itself.
    package var isHeadOnly = false
    /// `ID: value`.
    package var fields: [String] = []

    package init(url: String) {
        self.url = url
    }

    static let clientPort: UInt16 = 8080

    /// The request.
    func request() throws(CommandError) -> NodeRequest {
        guard let (authority, target) = parts,
            url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw CommandError(
                .usageError,
                "\(url.quoted()) is no URL; allowed: http://… or https://…, "
                    + "percent-encoded where it has to be")
        }
        var question = NodeRequest(
            isHeadOnly ? "HEAD" : "GET",
            isOfSite
                ? (target.hasPrefix("/") ? "" : "/") + target
                : "/v1/image?url=" + PercentEncoding.encoded(url))
        if isOfSite { question.host = String(authority) }
        for field in fields { question.fields.append(try Self.field(field)) }
        return question
    }

    /// Host and port, and path and query; nil if there is no host.
    private var parts: (authority: Substring, target: Substring)? {
        guard let scheme = ["http://", "https://"].first(where: url.hasPrefix) else { return nil }
        let rest = url.dropFirst(scheme.count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        return authority.isEmpty ? nil : (authority, rest[authority.endIndex...])
    }

    private static func field(_ text: String) throws(CommandError) -> NodeRequest.Field {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isName = sides[0].utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0)
        }
        guard sides.count == 2, !sides[0].isEmpty, isName,
            sides[1].utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else {
            throw CommandError(
                .usageError, "--header: \(text.quoted()) is no field; e.g. 'Accept: image/avif'")
        }
        return NodeRequest.Field(
            name: String(sides[0]), value: String(sides[1].drop { $0 == " " }))
    }
}

extension Commands {
    /// Gets an image or a site's answer where clients get it, in clear text.
    package func get(_ arguments: GetArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let question = try arguments.request()
            if !arguments.isHeadOnly, arguments.output == nil, console.isTerminal {
                throw CommandError(
                    .usageError, "standard output is a terminal: say --output FILE, or --head")
            }
            let place = try endpoint(arguments)
            let receiver = BodyOutput(arguments.output, console)
            let begin = BootClock.now()
            let exchange = Exchange(
                question, endpoint: place, by: place.resolved,
                until: begin + (try options.timeoutInterval())
            ) { response, piece throws(ExchangeError) in try receiver.write(piece, of: response) }
            Exchange.advance([exchange])
            let outcome = try outcome(exchange, receiver, arguments)
            let took = BootClock.now() - begin
            if arguments.isHeadOnly || arguments.output != nil {
                printSummary(outcome, receiver, took, arguments)
            }
            return outcome.status < 400 ? .succeeded : .refused
        }
    }

    private func endpoint(_ arguments: GetArguments) throws(CommandError) -> NodeEndpoint {
        if let base = arguments.base {
            guard let place = NodeEndpoint(base, defaultPort: GetArguments.clientPort) else {
                throw CommandError(
                    .usageError,
                    "--base: \(base.quoted()) is no address in clear text, e.g. "
                        + "http://127.0.0.1:8080; TLS is not spoken here")
            }
            return place
        }
        guard let address = try options.setting(options.localNode.clientAddress) else {
            throw CommandError(
                .misconfigured,
                "this node serves nobody in clear text, or on a port that the kernel chooses "
                    + "(port 0); say --base")
        }
        return NodeEndpoint(address.reachable)
    }

    /// The answer, if it is one of success, or its head alone is wanted.
    private func outcome(
        _ exchange: Exchange, _ receiver: BodyOutput, _ arguments: GetArguments
    ) throws(CommandError) -> NodeResponse {
        console.clearProgress()
        let url = "http://\(exchange.endpoint)\(exchange.request.path)"
        switch exchange.outcome {
        case .success(let response) where arguments.isHeadOnly: return response
        case .success(var response):
            guard response.isSuccess else {
                response.body = receiver.problem
                throw CommandError(response, url: url)
            }
            try receiver.finish()
            return response
        case .failure(let failure):
            throw receiver.error
                ?? CommandError(failure, url: url, timeout: options.timeout)
        case nil: preconditionFailure("\(url) is still being asked")
        }
    }

    /// Says what came.
    private func printSummary(
        _ response: NodeResponse, _ receiver: BodyOutput, _ took: Interval,
        _ arguments: GetArguments
    ) {
        let head = ResponseSummary(
            status: response.status, fields: response.fields.map { ($0.name, $0.value) },
            bodyBytes: arguments.isHeadOnly ? nil : receiver.byteCount,
            tookMilliseconds: took.milliseconds)
        if options.isJSON {
            console.print(head.json.compactText)
        } else if arguments.isHeadOnly {
            console.print(head.lines)
        } else {
            console.print([head.line(savedAs: arguments.output ?? "")])
        }
    }
}

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
