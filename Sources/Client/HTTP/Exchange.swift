import Glibc
import Ground
import HTTPRules
import NIOCore
import Wire

/// The reason why an exchange with a node has failed.
enum ExchangeError: Error, Hashable {
    case timedOut
    case system(CInt)
    /// The host name cannot be resolved.
    case unresolved(String)
    /// The response is not valid HTTP.
    case malformed
    /// The connection ended before the response.
    case incompleteResponse
    case responseTooLarge(bytesMax: Int)
    /// TLS has failed, or the certificate is not acceptable.
    case tls(TLSFailure)
}

/// A request to a node and its response, over a separate connection; no operation blocks.
final class Exchange {
    /// Receives the body of a response piece by piece; the response has its head only.
    typealias BodyHandler = (NodeResponse, ArraySlice<UInt8>) throws(ExchangeError) -> Void

    /// The state of an exchange.
    private enum State {
        case connecting
        /// The TLS handshake is in progress.
        case handshaking
        case awaitingHead
        case body(BodyDecoder)
    }

    /// The request.
    let request: NodeRequest
    /// The address of the node.
    let endpoint: NodeEndpoint
    /// The time at which the exchange fails.
    let deadline: Instant
    /// The result; `nil` while the exchange is in progress.
    private(set) var outcome: Result<NodeResponse, ExchangeError>?
    /// The addresses that have not been tried.
    private var addresses: ArraySlice<SocketAddress> = []
    private let requestBytes: [UInt8]
    /// The TLS session; `nil` for clear text.
    private let tls: TLSSession?
    /// The bytes that are not sent yet, encrypted with TLS.
    private var unsent: ArraySlice<UInt8> = []
    private let bodyHandler: BodyHandler?
    private let bodyBytesMax: Int
    /// The socket; -1 for none.
    private(set) var descriptor: CInt = -1
    private var state = State.connecting
    private var parser = ResponseParser()
    /// The received bytes that are not parsed, decrypted with TLS.
    private var received: [UInt8] = []
    private var response: NodeResponse?
    /// True if the end of the connection ends the body.
    private var isCloseDelimited = false

    /// Begins to connect; without an address it fails at once.
    ///
    /// - Parameters:
    ///   - question: the request.
    ///   - place: the address of the node, for Host.
    ///   - addresses: the socket addresses, tried in order.
    ///   - deadline: the time at which the exchange fails.
    ///   - tls: what the node is trusted by; `nil` for clear text.
    ///   - bodyBytesMax: the largest body in bytes that the response keeps.
    ///   - bodyHandler: receives a body of any size; `nil` to keep it in the response.
    init(
        _ question: NodeRequest, endpoint place: NodeEndpoint,
        by addresses: Result<[SocketAddress], ExchangeError>, until deadline: Instant,
        over tls: TLSTarget? = nil, bodyBytesMax: Int = 8 << 20, bodyHandler: BodyHandler? = nil
    ) {
        self.request = question
        self.endpoint = place
        self.deadline = deadline
        self.bodyBytesMax = bodyBytesMax
        self.bodyHandler = bodyHandler
        requestBytes = question.serialized(for: place)
        self.tls = tls.map { TLSSession($0.context, to: $0.host) }
        switch addresses {
        case .success(let addresses):
            self.addresses = addresses[...]
            connect(after: .system(EADDRNOTAVAIL))
        case .failure(let failure): outcome = .failure(failure)
        }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The URL of the request without its query, for errors.
    var url: String { "\(tls == nil ? "http" : "https")://\(endpoint)\(request.path)" }

    /// The events that poll(2) must wait for.
    var pollEvents: Int16 {
        switch state {
        case .connecting: Int16(POLLOUT)
        case .handshaking, .awaitingHead, .body: Int16(unsent.isEmpty ? POLLIN : POLLOUT)
        }
    }

    /// Does what is possible without blocking; called when the descriptor is ready or the deadline
    /// has passed.
    func advance(now: Instant) {
        guard outcome == nil else { return }
        guard now < deadline else { return finish(.failure(.timedOut)) }
        do throws(ExchangeError) {
            while outcome == nil, BootClock.now() < deadline, try step() {}
        } catch {
            if case .connecting = state { return connect(after: error) }
            finish(.failure(error))
        }
    }

    /// Ends the exchange and closes its socket.
    private func finish(_ outcome: Result<NodeResponse, ExchangeError>) {
        self.outcome = outcome
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }

    /// Tries the next address; fails with `failure` if there is none.
    private func connect(after failure: ExchangeError) {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
        guard let address = addresses.popFirst() else { return finish(.failure(failure)) }
        let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        descriptor = socket(address.protocol == .inet6 ? AF_INET6 : AF_INET, CInt(kind), 0)
        guard descriptor >= 0 else { return connect(after: .system(errno)) }
        let result = unsafe address.withSockAddr { pointer, bytes in
            unsafe Glibc.connect(descriptor, pointer, socklen_t(bytes))
        }
        if result != 0, errno != EINPROGRESS { connect(after: .system(errno)) }
    }

    /// Performs one step; returns false if it must wait.
    private func step() throws(ExchangeError) -> Bool {
        switch state {
        case .connecting:
            guard try isConnected() else { return false }
            if let tls {
                state = .handshaking
                tls.start()
                takeCiphertext(of: tls)
            } else {
                state = .awaitingHead
                unsent = requestBytes[...]
            }
            return true
        case .handshaking, .awaitingHead, .body: return try unsent.isEmpty ? receive() : send()
        }
    }

    /// Sends bytes; returns false if it must wait.
    private func send() throws(ExchangeError) -> Bool {
        let count = unsafe unsent.withUnsafeBytes { bytes in
            unsafe Glibc.send(descriptor, bytes.baseAddress, bytes.count, CInt(MSG_NOSIGNAL))
        }
        guard count >= 0 else { return try shouldRetry() }
        unsent = unsent.dropFirst(count)
        return true
    }

    /// Returns true if the connection is established.
    private func isConnected() throws(ExchangeError) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        guard unsafe Glibc.poll(&entry, 1, 0) > 0 else { return false }
        var code: CInt = 0
        var bytes = socklen_t(MemoryLayout<CInt>.size)
        unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &bytes)
        guard code == 0 else { throw .system(code) }
        return true
    }

    /// Returns true if a failed system call must be repeated at once, and false if it must wait;
    /// throws any other error.
    private func shouldRetry() throws(ExchangeError) -> Bool {
        switch errno {
        case EINTR: return true
        case EAGAIN: return false
        case ECONNRESET where response != nil: throw .incompleteResponse
        default: throw .system(errno)
        }
    }

    /// Receives and parses bytes; returns false if it must wait.
    private func receive() throws(ExchangeError) -> Bool {
        var piece = [UInt8](repeating: 0, count: 64 << 10)
        let count = unsafe recv(descriptor, &piece, piece.count, 0)
        guard count >= 0 else { return try shouldRetry() }
        guard count > 0 else {
            try connectionClosed()
            return false
        }
        if let tls {
            tls.receive(ByteBuffer(bytes: piece[..<count]))
            try decrypt(tls)
        } else {
            received += piece[..<count]
            try parse()
        }
        return true
    }

    /// Processes the received bytes of a TLS session: begins the request after the handshake, and
    /// parses decrypted bytes.
    private func decrypt(_ tls: TLSSession) throws(ExchangeError) {
        while outcome == nil {
            switch tls.next() {
            case .needsMore: return takeCiphertext(of: tls)
            case .established:
                state = .awaitingHead
                tls.write(ByteBuffer(bytes: requestBytes), now: BootClock.now())
            case .data(let plaintext):
                received += plaintext.readableBytesView
                try parse()
            case .closed: return try connectionClosed()
            case .failed(let failure):
                // The alert tells the node why; nothing waits for it.
                takeCiphertext(of: tls)
                _ = try? send()
                throw .tls(failure)
            }
        }
    }

    /// Queues the bytes that a TLS session has to send.
    private func takeCiphertext(of tls: TLSSession) {
        if let output = tls.takeOutput() { unsent += output.readableBytesView }
    }

    /// Parses the received bytes.
    private func parse() throws(ExchangeError) {
        while case .awaitingHead = state {
            let (bytes, isHead) = (received, request.method == "HEAD")
            switch parser.parse(bytes.span, from: 0, requestIsHead: isHead) {
            case .incomplete: return
            case .interim(_, let end): received.removeFirst(end)
            case .refused: throw .malformed
            case .head(let head, let end):
                received.removeFirst(end)
                response = NodeResponse(head.head)
                isCloseDelimited = head.framing == .untilClose
                state = .body(BodyDecoder(head.framing))
            }
        }
        guard case .body(var decoder) = state else { return }
        let bytes = received
        var start = 0
        while true {
            switch decoder.next(bytes.span, from: start) {
            case .data(let extent, let next):
                try receiveBody(bytes[extent.range])
                start = next
            case .needsMore:
                received = []
                state = .body(decoder)
                return
            case .end: return succeed()
            case .refused: throw .malformed
            }
        }
    }

    /// Passes a piece of the body to the handler, or keeps it in the response up to the limit.
    private func receiveBody(_ piece: ArraySlice<UInt8>) throws(ExchangeError) {
        guard let response else { preconditionFailure("a body before its head") }
        if let bodyHandler { return try bodyHandler(response, piece) }
        guard response.body.count + piece.count <= bodyBytesMax else {
            throw .responseTooLarge(bytesMax: bodyBytesMax)
        }
        self.response?.body += piece
    }

    /// Ends the exchange with the response.
    private func succeed() {
        guard let response else { preconditionFailure("an end before a head") }
        finish(.success(response))
    }

    /// Handles the end of the connection, which ends a body without a length; any other response is
    /// incomplete.
    private func connectionClosed() throws(ExchangeError) {
        if case .failed(let failure) = tls?.inputClosed() {
            if case .handshaking = state { throw .tls(failure) }
            throw .incompleteResponse
        }
        guard response != nil, isCloseDelimited else { throw .incompleteResponse }
        succeed()
    }
}

extension Exchange {
    /// Advances `exchanges` until all have ended, and blocks the thread meanwhile.
    static func advance(_ exchanges: [Exchange]) {
        while exchanges.contains(where: { $0.outcome == nil }) {
            _ = poll(for: exchanges, orUntilReadable: [], until: .distantFuture)
        }
    }

    /// Advances those of `exchanges` that are ready.
    ///
    /// It returns when one was advanced, when one of `others` can be read, at `time`, or after a
    /// signal.
    ///
    /// - Returns: those of `others` that can be read.
    static func poll(
        for exchanges: [Exchange], orUntilReadable others: [CInt], until time: Instant
    ) -> Set<CInt> {
        let running = exchanges.filter { $0.outcome == nil }
        let end = running.reduce(time) { min($0, $1.deadline) }
        let left = (end - BootClock.now()).nanoseconds
        var entries =
            running.map { pollfd(fd: $0.descriptor, events: $0.pollEvents, revents: 0) }
            + others.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        let milliseconds =
            end == .distantFuture ? -1 : CInt(clamping: max(0, left + 999_999) / 1_000_000)
        let count = unsafe Glibc.poll(&entries, nfds_t(entries.count), milliseconds)
        let now = BootClock.now()
        for (exchange, entry) in zip(running, entries)
        where exchange.deadline <= now || (count > 0 && entry.revents != 0) {
            exchange.advance(now: now)
        }
        let readable = zip(others, entries.dropFirst(running.count)).filter {
            count > 0 && $0.1.revents != 0
        }
        return Set(readable.map(\.0))
    }
}

/// The boot clock of this machine.
enum BootClock {
    /// Returns the time, suspended time included.
    static func now() -> Instant {
        var time = timespec()
        unsafe clock_gettime(CLOCK_BOOTTIME, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Blocks the thread for `interval`.
    static func pause(_ interval: Interval) {
        let until = now() + interval
        while now() < until {
            _ = poll(nil, 0, CInt(clamping: (until - now()).milliseconds + 1))
        }
    }
}
