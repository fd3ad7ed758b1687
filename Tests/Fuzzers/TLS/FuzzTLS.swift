import Ground
import NIOCore
import Wire

/// Both ends of TLS with a wire between them that changes the bytes: the first byte selects the
/// kind of sessions, and whether the rest are changes (the offset, as two bytes, and the value) of
/// a conversation or bytes that an attacker sends.
///
/// Invariants: if both ends complete the handshake, they agree; the data read is a prefix of the
/// data written; an end is final; a truncated connection never looks like one that was closed.
func fuzzTLS(_ input: [UInt8]) {
    let (dialler, acceptor) = stage.ends(isPeer: input[0] & 2 != 0)
    let wire = Wiretap(dialler, acceptor)
    if input[0] & 4 == 0 {
        wire.converse(changes: Changes(Array(input.dropFirst())))
    } else {
        wire.intrude(Array(input.dropFirst()), isLate: input[0] & 1 != 0)
    }
    wire.judge()
}

/// The contexts of the sessions, created once.
private let stage = Stage()

private struct Stage {
    private let server: TLSServerContext
    private let client: TLSClientContext
    private let peer: TLSPeerContext

    init() {
        do {
            let made = SelfSigned()
            server = try TLSServerContext(TLSServerSettings(identities: [made.identity]))
            let entropy = (0..<TicketKeys.entropyBytes).map { UInt8($0) }
            server.setTicketKeys(TicketKeys(now: .zero, entropy: entropy))
            client = try TLSClientContext(
                TLSClientSettings(trustsSystem: false, issuersPEM: made.identity.chainPEM))
            peer = try TLSPeerContext(secrets: [Array(repeating: 7, count: 32)])
        } catch {
            preconditionFailure("\(error)")
        }
    }

    func ends(isPeer: Bool) -> (TLSSession, TLSSession) {
        isPeer
            ? (TLSSession(peer: peer, dials: true), TLSSession(peer: peer, dials: false))
            : (TLSSession(client, to: .name(SelfSigned.name)), TLSSession(server))
    }
}
