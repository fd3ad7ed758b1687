import Certificates
import Ground
import NIOCore
import Testing
import Wire

/// One end of a connection, with what it has received and sent.
final class PairEnd {
    let session: TLSSession
    var parameters: TLSParameters?
    /// All plaintext so far.
    var data: [UInt8] = []
    /// The sizes of the pieces of plaintext.
    var pieces: [Int] = []
    var isClosed = false
    var failure: TLSFailure?
    /// All ciphertext that this end has sent.
    var sent: [UInt8] = []

    init(_ session: TLSSession) {
        self.session = session
    }

    /// Reads everything received.
    func drain() {
        while true {
            switch session.next() {
            case .needsMore: return
            case .established(let parameters):
                #expect(self.parameters == nil)
                self.parameters = parameters
            case .data(let piece):
                #expect(parameters != nil && piece.readableBytes > 0)
                data += piece.readableBytesView
                pieces.append(piece.readableBytes)
            case .closed:
                isClosed = true
                return
            case .failed(let failure):
                self.failure = failure
                return
            }
        }
    }

    /// Takes the bytes to be sent.
    func take() -> [UInt8] {
        guard let output = session.takeOutput() else { return [] }
        let bytes = Array(output.readableBytesView)
        sent += bytes
        return bytes
    }

    func give(_ bytes: some Collection<UInt8>) {
        session.receive(ByteBuffer(bytes: bytes))
        drain()
    }
}

/// Two ends and a wire that delivers everything in pieces.
final class Pair {
    let client: PairEnd
    let server: PairEnd

    init(client: TLSSession, server: TLSSession) {
        self.client = PairEnd(client)
        self.server = PairEnd(server)
        client.start()
        server.start()
    }

    /// Delivers until neither end has anything to send; `cut` gives the size of the next piece.
    @discardableResult
    func run(cut: () -> Int = { .max }) -> Pair {
        while true {
            let up = client.take()
            let down = server.take()
            if up.isEmpty, down.isEmpty { return self }
            Self.deliver(up, to: server, cut)
            Self.deliver(down, to: client, cut)
        }
    }

    private static func deliver(_ bytes: [UInt8], to end: PairEnd, _ cut: () -> Int) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(cut())
            rest = rest.dropFirst(piece.count)
            end.give(piece)
        }
    }
}

extension TLSServerSettings {
    /// A server context with the certificates `first` and `others`.
    init(_ first: TestCertificate, _ others: TestCertificate...) {
        self.init(identities: ([first] + others).map(\.identity))
    }
}

extension TLSClientSettings {
    /// A client context that trusts `issuer` alone.
    init(trusting issuer: TestCertificate) {
        self.init(trustsSystem: false, issuersPEM: issuer.pem)
    }
}

/// A client of `a.example` that trusts the tests' authority, and a server with `certificate`.
func pair(
    _ certificate: TestCertificate = .exampleLeaf, name: TLSServerName = .name("a.example"),
    server change: (inout TLSServerSettings) -> Void = { _ in },
    client changeClient: (inout TLSClientSettings) -> Void = { _ in }
) throws -> Pair {
    var server = TLSServerSettings(certificate)
    change(&server)
    var client = TLSClientSettings(trusting: .authority)
    changeClient(&client)
    return Pair(
        client: TLSSession(try TLSClientContext(client), to: name),
        server: TLSSession(try TLSServerContext(server)))
}

let noon = Instant(nanoseconds: 43_200_000_000_000)
