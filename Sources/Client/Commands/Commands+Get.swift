import Admin
import Glibc
import Ground
import HTTPRules
import Telemetry
import Wire

/// The arguments of a request for an image or a site's resource.
package struct GetArguments: Sendable {
    /// The URL.
    package var url: String
    /// The address of the node's port for clients; `nil` for this machine's node.
    package var base: String?
    /// The path of a file with further trusted issuers for TLS; `nil` for those of the system.
    package var issuersFile: String?
    /// The host that the certificate of the node must have; `nil` for that of the site or of
    /// ``base``.
    package var serverName: String?
    /// True if the URL is of a site, so that its host is sent as Host.
    package var isOfSite = false
    /// The path of the output file; `nil` for standard output.
    package var output: String?
    /// True if only the head is requested and shown.
    package var isHeadOnly = false
    /// The additional header fields as `NAME: value`.
    package var fields: [String] = []

    /// Creates the arguments for a URL.
    package init(url: String) {
        self.url = url
    }

    static let clientPort: UInt16 = 8080
    static let securePort: UInt16 = 443

    /// Returns the request: for a site its path with its host, else the API's for the image.
    ///
    /// - Throws: the fault of the URL or of a header field.
    func request() throws(CommandError) -> NodeRequest {
        guard let (authority, target) = parts,
            url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else {
            throw .notURL(url, note: ", percent-encoded where necessary")
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

    /// The authority, and the path with query; `nil` if there is no host.
    fileprivate var parts: (authority: Substring, target: Substring)? {
        guard let scheme = ["http://", "https://"].first(where: url.hasPrefix) else { return nil }
        let rest = url.dropFirst(scheme.count).prefix { $0 != "#" }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        return authority.isEmpty ? nil : (authority, rest[authority.endIndex...])
    }

    /// Parses a header field.
    private static func field(_ text: String) throws(CommandError) -> NodeRequest.Field {
        let sides = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let isName = sides[0].utf8.allSatisfy {
            ASCII.isLetter($0) || ASCII.isDigit($0) || "!#$%&'*+-.^_`|~".utf8.contains($0)
        }
        guard sides.count == 2, !sides[0].isEmpty, isName,
            sides[1].utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 })
        else {
            throw CommandError(
                .usageError,
                "--header: \(text.quoted()) is not a header field, e.g. 'Accept: image/avif'")
        }
        return NodeRequest.Field(
            name: String(sides[0]), value: String(sides[1].drop { $0 == " " }))
    }
}

extension Commands {
    /// Requests an image or a site's resource from a node's port for clients, in clear text or over
    /// TLS.
    ///
    /// A body is not written to a terminal. The outcome is `refused` for an error status.
    package func get(_ arguments: GetArguments) -> CommandOutcome {
        run { () throws(CommandError) in
            let question = try arguments.request()
            if !arguments.isHeadOnly, arguments.output == nil, console.isTerminal {
                throw CommandError(
                    .usageError, "standard output is a terminal: use --output FILE or --head")
            }
            let (place, isSecure) = try endpoint(arguments)
            let tls = isSecure ? try tlsTarget(place, arguments) : nil
            let receiver = BodyOutput(arguments.output, console)
            let begin = BootClock.now()
            let exchange = Exchange(
                question, endpoint: place, by: place.resolved,
                until: begin + (try options.timeoutInterval()), over: tls
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

    /// Returns the address of the port for clients, and whether it uses TLS.
    private func endpoint(
        _ arguments: GetArguments
    ) throws(CommandError) -> (NodeEndpoint, isSecure: Bool) {
        if let base = arguments.base {
            let isSecure = base.hasPrefix("https://")
            let place = NodeEndpoint(
                isSecure ? String(base.dropFirst("https://".count)) : base,
                defaultPort: isSecure ? GetArguments.securePort : GetArguments.clientPort)
            guard let place else {
                throw CommandError(
                    .usageError,
                    "--base: \(base.quoted()) is not an address, e.g. http://127.0.0.1:8080 or "
                        + "https://127.0.0.1:8443")
            }
            return (place, isSecure)
        }
        if let address = try CommandOptions.setting(options.localNode.clientAddress) {
            return (NodeEndpoint(address.reachable), false)
        }
        guard let address = try CommandOptions.setting(options.localNode.secureAddress) else {
            throw CommandError(
                .misconfigured,
                "the kernel chooses this node's ports for clients (port 0); use --base")
        }
        return (NodeEndpoint(address.reachable), true)
    }

    /// Returns what the node at `place` is trusted by: a certificate for the host that the operator
    /// or the URL of a site names, or for the node's own address.
    private func tlsTarget(
        _ place: NodeEndpoint, _ arguments: GetArguments
    ) throws(CommandError) -> TLSTarget {
        let site = arguments.isOfSite ? arguments.parts.map { String($0.authority) } : nil
        let text = arguments.serverName ?? site ?? "\(place)"
        guard let host = TLSServerName(host: text) else {
            throw CommandError(
                .usageError, "--server-name: \(text.quoted()) is not a host, e.g. www.example.com")
        }
        return try TLSTarget(host, issuers: arguments.issuersFile)
    }

    /// Returns the response if it is successful, after completing the output, or if only its head
    /// is wanted; any other outcome is an error.
    private func outcome(
        _ exchange: Exchange, _ receiver: BodyOutput, _ arguments: GetArguments
    ) throws(CommandError) -> NodeResponse {
        console.clearProgress()
        let url = exchange.url
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

    /// Prints a summary of the response.
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

/// The output of a response's body: to standard output as it arrives, or to a file that appears
/// only when complete.
final class BodyOutput {
    private let path: String?
    private let console: Console
    private let startedAt = BootClock.now()
    private var descriptor: CInt = -1
    private var nextProgressAt: Instant
    /// The number of body bytes so far.
    private(set) var byteCount: UInt64 = 0
    /// The body of an error response, up to 64 KiB.
    private(set) var problem: [UInt8] = []
    /// The reason why the output has failed; `nil` while it works.
    private(set) var error: CommandError?

    private static let problemBytesMax = 64 << 10
    /// The time after which progress is shown.
    private static let progressAfter = Interval.milliseconds(300)
    private static let progressEvery = Interval.milliseconds(100)

    /// Creates an output to the file at `path`, or to standard output if it is `nil`.
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

    /// The path of the temporary file that is renamed when it is complete; `nil` for standard
    /// output.
    ///
    /// For a link, a device or a pipe, which must not be replaced, it is the path of the output
    /// itself.
    private let partPath: String?

    /// Returns the path to write to for the output at `path`: beside it, unless that is no regular
    /// file.
    private static func partPath(_ path: String) -> String {
        var facts = stat()
        let isThere = unsafe lstat(path, &facts) == 0
        let isFile = facts.st_mode & S_IFMT == S_IFREG
        return isThere && !isFile ? path : path + ".part"
    }

    /// Writes a piece of the body; of an error response, keeps it for the message.
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

    /// Completes the output and renames the file; does nothing for standard output.
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

    /// Opens the output file unless it is open; does nothing for standard output.
    private func open() throws(ExchangeError) {
        guard descriptor < 0, let partPath else { return }
        descriptor = unsafe Glibc.open(partPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw recordError(errno) }
    }

    /// Records an error of the output and returns the error that ends the exchange.
    private func recordError(_ code: CInt) -> ExchangeError {
        let why = unsafe String(cString: strerror(code))
        error = CommandError(.refused, "\(path ?? "standard output"): \(why)")
        return .system(code)
    }

    /// Shows the progress of writing a file, after a while and then at intervals.
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
