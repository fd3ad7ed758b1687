import Ground
import HTTPRules
import Testing
import Trials

@Suite("Requests for another protocol")
struct UpgradeTests {
    private func upgrade(
        _ fields: [String], allowed: [String] = ["websocket"], isHTTP10: Bool = false,
        hasBody: Bool = false
    ) -> Upgrade {
        let head = ResponseHead(status: 200, fields: fields)
        return Upgrade(
            head.lines, in: head.bytes.span, isHTTP10: isHTTP10, hasBody: hasBody,
            allowed: allowed)
    }

    @Test(
        "RFC 9110 §7.8: of the requested protocols the allowed ones are forwarded unchanged",
        arguments: [
            (["Upgrade: websocket"], "websocket"), (["Upgrade: WebSocket/13"], "WebSocket/13"),
            (["Upgrade: h2c, websocket"], "websocket"),
            (["Upgrade: chat/2, websocket"], "chat/2, websocket"),
            (["Upgrade: odd", "upgrade: ,websocket,"], "websocket"),
        ])
    func forwarded(lines: [String], asked: String) {
        for connection in ["Connection: Upgrade", "connection: keep-alive , uPGRADE"] {
            let upgrade = upgrade(lines + [connection], allowed: ["chat", "websocket"])
            #expect(upgrade == .forwarded(asked.bytes))
        }
    }

    @Test(
        "A protocol that is not allowed is refused, whatever else is requested",
        arguments: ["websocket", "WebSocket", "IRC/6.9", "h2c, websocket", "HTTP/3, odd"])
    func refused(value: String) {
        #expect(upgrade(["Connection: Upgrade", "Upgrade: \(value)"], allowed: []) == .refused)
    }

    @Test("A request with a body is not upgraded")
    func body() {
        let fields = ["Connection: Upgrade", "Upgrade: websocket"]
        #expect(upgrade(fields, hasBody: true) == .refused)
        #expect(upgrade(["Connection: Upgrade", "Upgrade: h2c"], hasBody: true) == .none)
    }

    @Test(
        "Upgrades to other versions of HTTP or to TLS are ignored",
        arguments: ["h2c", "H2C", "HTTP/2.0", "TLS/1.2", "tls/1.3, h2c", "h2", "", ","])
    func ignored(value: String) {
        #expect(upgrade(["Connection: Upgrade", "Upgrade: \(value)"], allowed: []) == .none)
    }

    @Test("Upgrade requires the Connection option and HTTP/1.1")
    func bare() {
        #expect(upgrade(["Upgrade: websocket"]) == .none)
        #expect(upgrade(["Connection: keep-alive", "Upgrade: websocket"]) == .none)
        #expect(upgrade(["Connection: Upgrade"]) == .none)
        let fields = ["Connection: Upgrade", "Upgrade: websocket"]
        #expect(upgrade(fields, isHTTP10: true) == .none)
    }

    @Test("A 101 must select one of the requested protocols")
    func switched() {
        func isSwitch(_ fields: String..., asked: String) -> Bool {
            Upgrade.isAcceptance(ResponseHead(status: 101, fields: fields), requested: asked.bytes)
        }
        #expect(isSwitch("Upgrade: websocket", asked: "websocket"))
        #expect(isSwitch("upgrade: WEBSOCKET", asked: "chat/2, WebSocket"))
        #expect(isSwitch("Upgrade: chat", asked: "chat/2, websocket"))
        #expect(!isSwitch("Upgrade: chat", asked: "websocket"))
        #expect(!isSwitch("Upgrade: websocket, chat", asked: "websocket"))
        #expect(!isSwitch("X: websocket", asked: "websocket"))
        #expect(!isSwitch("Upgrade: websocket", asked: ""))
    }

    @Test("The forwarded request has Upgrade and the Connection option")
    func request() {
        let head = ResponseHead(
            status: 200,
            fields: [
                "Connection: Upgrade, X", "Upgrade: websocket, odd", "X: 1", "TE: trailers",
                "Sec-WebSocket-Key: k", "A: b",
            ])
        var request = ForwardedRequest(
            method: "GET".bytes, target: "/".bytes, host: "a".bytes, client: nil, remoteAddress: nil
        )
        request.upgrade = "websocket".bytes
        var rules = RequestFieldRules(authority: "origin".bytes)
        rules.forwardsOthers = false
        let outcome = RequestForwarder.forward(
            request, head.lines, in: head.bytes.span, rules: rules, purpose: .pass,
            acceptsTrailers: true)
        guard case .send(let bytes) = outcome else {
            Issue.record("\(outcome)")
            return
        }
        let lines = bytes.lines.filter { !$0.hasPrefix("X-Forwarded-") && !$0.hasPrefix("Via") }
        #expect(
            lines == [
                "GET / HTTP/1.1", "Host: origin", "Sec-WebSocket-Key: k", "Upgrade: websocket",
                "Connection: Upgrade",
            ])
    }

    @Test("The 101 for the client has the same protocol")
    func answer() {
        let head = ResponseHead(
            status: 101,
            fields: ["Connection: Upgrade, X", "Upgrade: websocket", "X: 1", "Y: 2"])
        var bytes: [UInt8] = []
        ResponseForwarder.append(head, rules: ResponseFieldRules(addsVia: false), to: &bytes)
        #expect(bytes.lines.dropFirst() == ["Y: 2", "Upgrade: websocket", "Connection: Upgrade"])
    }
}
