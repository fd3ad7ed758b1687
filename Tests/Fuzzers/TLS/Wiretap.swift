import Ground
import NIOCore
import Wire

/// Changes of bytes at offsets of the whole transfer.
struct Changes {
    private var places: [Int: UInt8] = [:]

    /// Creates changes from three bytes each: the offset, and the number added to the byte there.
    init(_ bytes: [UInt8]) {
        for start in stride(from: 0, to: bytes.count - 2, by: 3) {
            places[Int(bytes[start]) << 8 | Int(bytes[start + 1])] = bytes[start + 2]
        }
    }

    /// Returns `bytes`, which begin at `start`, as they arrive.
    func applied(to bytes: [UInt8], from start: Int) -> [UInt8] {
        guard !places.isEmpty else { return bytes }
        return bytes.enumerated().map { $1 &+ (places[start + $0] ?? 0) }
    }
}

/// One end, and its results.
private final class Observer {
    let session: TLSSession
    var parameters: TLSParameters?
    var data: [UInt8] = []
    var isClosed = false
    var failure: TLSFailure?

    init(_ session: TLSSession) {
        self.session = session
    }

    func receive(_ bytes: [UInt8]) {
        session.receive(ByteBuffer(bytes: bytes))
        while true {
            switch session.next() {
            case .needsMore:
                precondition(failure == nil && !isClosed)
                return
            case .established(let parameters):
                precondition(self.parameters == nil && failure == nil)
                self.parameters = parameters
            case .data(let piece):
                precondition(parameters != nil && !isClosed && failure == nil)
                precondition((1...16_384).contains(piece.readableBytes))
                data += piece.readableBytesView
            case .closed:
                precondition(parameters != nil && failure == nil)
                isClosed = true
                return
            case .failed(let failure):
                precondition(self.failure == nil || self.failure == failure)
                precondition(!failure.message.isEmpty && !isClosed)
                self.failure = failure
                return
            }
        }
    }

    func take() -> [UInt8] {
        session.takeOutput().map { Array($0.readableBytesView) } ?? []
    }
}

/// Carries bytes between two ends, and records their results.
final class Wiretap {
    private let dialler: Observer
    private let acceptor: Observer
    private let text: [UInt8] = (0..<2000).map { UInt8(truncatingIfNeeded: $0) }
    private var carried = 0

    init(_ dialler: TLSSession, _ acceptor: TLSSession) {
        self.dialler = Observer(dialler)
        self.acceptor = Observer(acceptor)
        dialler.start()
        acceptor.start()
    }

    /// Runs a handshake, a text each way, and the end of both, with `changes` applied.
    func converse(changes: Changes) {
        carry(changes)
        for end in [dialler, acceptor] where end.parameters != nil {
            end.session.write(ByteBuffer(bytes: text), now: .zero)
            end.session.close()
        }
        carry(changes)
    }

    /// Sends an attacker's `bytes` to both ends: instead of the other's hello, or after the
    /// handshake.
    func intrude(_ bytes: [UInt8], isLate: Bool) {
        if isLate { carry(Changes([])) }
        dialler.receive(bytes)
        acceptor.receive(bytes)
        precondition(dialler.data.isEmpty && acceptor.data.isEmpty)
        precondition(!dialler.isClosed && !acceptor.isClosed)
        _ = (dialler.take(), acceptor.take())
    }

    private func carry(_ changes: Changes) {
        while true {
            let up = dialler.take()
            let down = acceptor.take()
            if up.isEmpty, down.isEmpty { return }
            let changedUp = changes.applied(to: up, from: carried)
            let changedDown = changes.applied(to: down, from: carried + up.count)
            carried += up.count + down.count
            acceptor.receive(changedUp)
            dialler.receive(changedDown)
        }
    }

    /// Checks the invariants that hold whatever was carried.
    func judge() {
        if let one = dialler.parameters, let other = acceptor.parameters {
            precondition(one.version == other.version && one.group == other.group)
            precondition(one.cipherSuite == other.cipherSuite)
            precondition(one.applicationProtocol == other.applicationProtocol)
        }
        for end in [dialler, acceptor] {
            precondition(text.starts(with: end.data))
            precondition(!end.isClosed || end.data == text)
            let ending = end.session.inputClosed()
            guard end.failure == nil, !end.isClosed else {
                precondition(ending == nil)
                continue
            }
            guard case .failed(let failure)? = ending, failure.cause == .truncated else {
                preconditionFailure("a cut is no end")
            }
        }
    }
}
