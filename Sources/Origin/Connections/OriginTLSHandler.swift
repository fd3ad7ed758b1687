import Ground
import NIOCore
package import Wire

/// The TLS layer of a connection to an origin: performs the handshake, reports its outcome, then
/// carries the bytes of the handlers behind it.
///
/// The end of input is reported as an ``InputCloseReason`` event. Written data is encrypted when it
/// is flushed, so that small pieces share a record.
final class OriginTLSHandler: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private enum Phase {
        case handshaking
        case open
        /// No further reads; the channel is closed once the received data has been delivered.
        case ended
    }

    private let session: TLSSession
    private let now: @Sendable () -> Instant
    /// Called once with the outcome of the handshake; `nil` afterwards.
    private var handshakeCompleted: ((Result<TLSParameters, TLSFailure>) -> Void)?
    private let storeResumption: (TLSResumption) -> Void
    private var phase = Phase.handshaking
    /// Plaintext that waits for the next flush.
    private var pending: [ByteBuffer] = []
    /// Promises of the plaintext that waits.
    private var promises: [EventLoopPromise<Void>] = []

    /// Creates the client side of `session`.
    ///
    /// - Parameters:
    ///   - session: a new session.
    ///   - now: reads the boot clock.
    ///   - storeResumption: stores the data that resumes a later session to the same origin.
    ///   - handshakeCompleted: receives the outcome of the handshake, unless the channel is closed
    ///     locally before.
    init(
        _ session: TLSSession, now: @escaping @Sendable () -> Instant,
        storeResumption: @escaping (TLSResumption) -> Void,
        handshakeCompleted: @escaping (Result<TLSParameters, TLSFailure>) -> Void
    ) {
        self.session = session
        self.now = now
        self.storeResumption = storeResumption
        self.handshakeCompleted = handshakeCompleted
    }

    func handlerAdded(context: ChannelHandlerContext) {
        session.start()
        sendOutput(context)
        readEvents(context)
        context.read()
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        handshakeCompleted = nil
        for promise in promises { promise.fail(ChannelError.ioOnClosedChannel) }
        promises = []
    }

    // MARK: Input

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard phase != .ended else { return }
        session.receive(unwrapInboundIn(data))
        readEvents(context)
        if let ticket = session.takeResumption() { storeResumption(ticket) }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        switch phase {
        case .handshaking: context.read()
        case .open: context.fireChannelReadComplete()
        case .ended:
            context.fireChannelReadComplete()
            context.close(promise: nil)
        }
    }

    /// Processes the events of the session until it needs more input or has ended.
    private func readEvents(_ context: ChannelHandlerContext) {
        while phase != .ended {
            switch session.next() {
            case .needsMore: return sendOutput(context)
            case .established(let parameters):
                phase = .open
                sendOutput(context)
                completeHandshake(.success(parameters))
            case .data(let plaintext): context.fireChannelRead(wrapInboundOut(plaintext))
            case .closed:
                sendOutput(context)
                closeInput(.orderly, context)
            case .failed(let failure):
                sendOutput(context)
                closeInput(.tls(failure), context)
            }
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if phase != .ended, case .failed(let failure)? = session.inputClosed() {
            closeInput(phase == .open ? .truncated : .tls(failure), context)
        }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if phase == .open {
            phase = .ended
            context.fireErrorCaught(error)
        }
        context.close(promise: nil)
    }

    /// Ends the input: fails a handshake in progress and closes the channel, or passes `end` to the
    /// handlers behind.
    private func closeInput(_ end: InputCloseReason, _ context: ChannelHandlerContext) {
        let wasHandshaking = phase == .handshaking
        phase = .ended
        guard wasHandshaking else { return context.fireUserInboundEventTriggered(end) }
        guard case .tls(let failure) = end else { return }
        completeHandshake(.failure(failure))
        context.close(promise: nil)
    }

    /// Reports the outcome of the handshake, once.
    private func completeHandshake(_ result: Result<TLSParameters, TLSFailure>) {
        handshakeCompleted.take()?(result)
    }

    // MARK: Output

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        pending.append(unwrapOutboundIn(data))
        if let promise { promises.append(promise) }
    }

    func flush(context: ChannelHandlerContext) {
        encrypt(context)
        context.flush()
    }

    func close(
        context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?
    ) {
        handshakeCompleted = nil
        if mode != .input {
            if phase == .open { encrypt(context) }
            session.close()
            sendOutput(context)
        }
        if mode == .all { phase = .ended }
        context.close(mode: mode, promise: promise)
    }

    /// Writes the plaintext that waits as TLS records; its promises complete with that write.
    private func encrypt(_ context: ChannelHandlerContext) {
        guard !pending.isEmpty else { return }
        session.write(pending, now: now())
        pending.removeAll(keepingCapacity: true)
        let output = session.takeOutput()
        guard !promises.isEmpty else {
            return output.map { context.write(wrapOutboundOut($0), promise: nil) } ?? ()
        }
        let given = promises
        promises = []
        guard let output else {
            for promise in given { promise.fail(ChannelError.ioOnClosedChannel) }
            return
        }
        let written = context.eventLoop.makePromise(of: Void.self)
        for promise in given { written.futureResult.cascade(to: promise) }
        context.write(wrapOutboundOut(output), promise: written)
    }

    /// Writes the output of the session itself, such as handshake messages and alerts.
    private func sendOutput(_ context: ChannelHandlerContext) {
        // Earlier plaintext precedes it.
        if phase == .open { encrypt(context) }
        guard let output = session.takeOutput() else { return }
        context.writeAndFlush(wrapOutboundOut(output), promise: nil)
    }
}

/// A cache of TLS sessions and negotiated protocols by origin, which makes later connections
/// cheaper.
struct OriginTLSCache {
    private struct Entry {
        var resumption: TLSResumption?
        var applicationProtocol: TLSApplicationProtocol?
    }

    /// Maximum number of origins; the one added first is evicted first.
    static let originsMax = 1000

    private var entries: [OriginAuthority: Entry] = [:]
    /// The origins in the order in which they were added.
    private var order: [OriginAuthority] = []

    /// Returns the data that resumes a session to `origin`.
    func resumption(of origin: OriginAuthority) -> TLSResumption? {
        entries[origin]?.resumption
    }

    /// Returns true if the last connection to `origin` negotiated HTTP/2, or if there was none.
    func maySupportHTTP2(_ origin: OriginAuthority) -> Bool {
        guard let memory = entries[origin] else { return true }
        return memory.applicationProtocol == .http2
    }

    /// Stores the data that resumes a session; without effect before ``recordProtocol(on:with:)``.
    mutating func store(_ resumption: TLSResumption, of origin: OriginAuthority) {
        entries[origin]?.resumption = resumption
    }

    /// Records the protocol negotiated with `origin`; `nil` is HTTP/1.1.
    mutating func recordProtocol(
        on applicationProtocol: TLSApplicationProtocol?, with origin: OriginAuthority
    ) {
        if entries[origin] != nil {
            entries[origin]?.applicationProtocol = applicationProtocol
            return
        }
        if order.count >= Self.originsMax { entries[order.removeFirst()] = nil }
        order.append(origin)
        entries[origin] = Entry(applicationProtocol: applicationProtocol)
    }

    /// Drops all entries because trust has changed, so that no session is resumed.
    mutating func removeAll() {
        self = OriginTLSCache()
    }
}

/// The trust anchors of a TLS client for origins, loaded and ready for use.
///
/// Two are equal if their settings are equal, so that reading the same files again changes nothing:
/// a certificate verified under one is valid under the other.
package final class OriginTrustStore: Sendable {
    let context: TLSClientContext
    /// The settings from which the context was created.
    package let settings: TLSClientSettings
    private let digest: Int

    /// Loads the trust anchors that `settings` names.
    ///
    /// - Throws: ``TLSSetupError`` if they cannot be loaded.
    package init(_ settings: TLSClientSettings) throws(TLSSetupError) {
        context = try TLSClientContext(settings)
        self.settings = settings
        digest = settings.hashValue
    }
}

extension OriginTrustStore: Hashable {
    /// Returns true if both have the same settings.
    package static func == (left: OriginTrustStore, right: OriginTrustStore) -> Bool {
        left === right || left.digest == right.digest && left.settings == right.settings
    }

    /// Hashes the digest of the settings, computed once.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(digest)
    }
}
