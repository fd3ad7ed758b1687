import NodeConfiguration
import Telemetry
import Testing

@Suite("Refused values")
struct SettingErrorTests {
    /// An invalid text, its setting, and the message's part between source and allowed values.
    struct Refusal: CustomTestStringConvertible, Sendable {
        let key: any AnySettingKey
        let text: String
        let says: String
        let allowed: String

        var testDescription: String { "\(key.setting.name) \(text.debugDescription)" }
    }

    private static let sizes = "16MiB…1TiB, e.g. 512MiB"
    private static let times = "10ms…1d, e.g. 60s"
    private static let listens =
        "IPV4:PORT, [IPV6]:PORT or localhost:PORT, e.g. 127.0.0.1:8080"
    private static let addressesOrOff =
        "IPV4:PORT, [IPV6]:PORT, localhost:PORT or off, e.g. 127.0.0.1:8081"
    private static let networks = "ADDRESS or ADDRESS/BITS, IPv4 or IPv6, e.g. 10.0.0.0/8"
    private static let sites =
        "*, HOST or HOST:PORT, then =http://ORIGIN[:PORT][/PATH] or =https://…, "
        + "e.g. www.example.com=http://127.0.0.1:9000"
    private static let patterns =
        "*, HOST or *.SUFFIX, each perhaps with :PORT, e.g. *.example.com"

    static let refusals: [Refusal] = [
        Refusal(
            key: Setting.memory.memoryLimit, text: "12x", says: "\"12x\" is not a size",
            allowed: sizes),
        Refusal(
            key: Setting.memory.memoryLimit, text: "", says: "\"\" is not a size", allowed: sizes),
        Refusal(
            key: Setting.memory.memoryLimit, text: "1MiB", says: "\"1MiB\" is too small",
            allowed: sizes),
        Refusal(
            key: Setting.memory.memoryLimit, text: "2TiB", says: "\"2TiB\" is too large",
            allowed: sizes),
        Refusal(
            key: Setting.clients.idleTimeout, text: "soon", says: "\"soon\" is not a duration",
            allowed: times),
        Refusal(
            key: Setting.clients.idleTimeout, text: "9ms", says: "\"9ms\" is too small",
            allowed: times),
        Refusal(
            key: Setting.clients.idleTimeout, text: "2d", says: "\"2d\" is too large",
            allowed: times),
        Refusal(
            key: Setting.clients.rangesLimit, text: "many", says: "\"many\" is not a number",
            allowed: "1…1000, e.g. 16"),
        Refusal(
            key: Setting.clients.rangesLimit, text: "-1", says: "\"-1\" is not a number",
            allowed: "1…1000, e.g. 16"),
        Refusal(
            key: Setting.clients.rangesLimit, text: "0", says: "\"0\" is too small",
            allowed: "1…1000, e.g. 16"),
        Refusal(
            key: Setting.clients.rangesLimit, text: "1001", says: "\"1001\" is too large",
            allowed: "1…1000, e.g. 16"),
        Refusal(
            key: Setting.node.listen, text: "8080", says: "\"8080\" is not an address and port",
            allowed: listens),
        Refusal(
            key: Setting.node.adminListen, text: "no", says: "\"no\" is not an address and port",
            allowed: addressesOrOff),
        Refusal(
            key: Setting.node.accessLog, text: "common", says: "\"common\" is not one of them",
            allowed: "off, combined, json"),
        Refusal(
            key: Setting.origins.allowPrivateOrigin, text: "10.0.0",
            says: "\"10.0.0\" is not a network",
            allowed: networks),
        Refusal(
            key: Setting.origins.allowPrivateOrigin, text: "10.0.0.7/8",
            says: "\"10.0.0.7/8\" has bits set past its prefix; perhaps 10.0.0.0/8",
            allowed: networks),
        Refusal(
            key: Setting.origins.allowOrigin, text: "http://a.example",
            says: "\"http://a.example\" is not an origin pattern", allowed: patterns),
        Refusal(
            key: Setting.origins.allowType, text: "text/html; charset=utf-8",
            says: "\"text/html; charset=utf-8\" is not a media type",
            allowed: "TYPE/SUBTYPE without parameters, e.g. application/json"),
        Refusal(
            key: Setting.origins.originProxy, text: "http://proxy:3128",
            says: "\"http://proxy:3128\" is not a host and port",
            allowed: "HOST:PORT, IPV4:PORT or [IPV6]:PORT, e.g. proxy.example.com:3128"),
        Refusal(
            key: Setting.origins.site, text: "a b=http://o.example",
            says: "\"a b=http://o.example\" is not a site", allowed: sites),
        Refusal(
            key: Setting.node.config, text: "", says: "\"\" is not a path",
            allowed: "a path, e.g. nuthatch.yaml"),
        Refusal(
            key: Setting.cluster.fence, text: "never", says: "\"never\" is not a duration",
            allowed: "2s…10m or off, e.g. 10s"),
        Refusal(
            key: Setting.cluster.nodeName, text: "a node", says: "\"a node\" is not a name",
            allowed: "1 to 64 letters, digits, dots, hyphens and underscores, or @directory, "
                + "e.g. nuthatch-1"),
        Refusal(
            key: Setting.cluster.adminAdvertise, text: "node-1:8081",
            says: "\"node-1:8081\" is not a URL",
            allowed: "http://HOST[:PORT][/PATH] or https://…, "
                + "e.g. http://nuthatch-1.example:8081"),
    ]

    @Test(
        "A message has the setting, its source, the error and what is allowed",
        arguments: refusals)
    func messageIsComplete(refusal: Refusal) {
        let setting = refusal.key.setting
        let sources: [(SettingSource, String)] = [
            (.flag(setting.flag), "flag \(setting.flag)"),
            (.environment("NUTHATCH_X"), "environment NUTHATCH_X"),
            (.file(name: "n.yaml", line: 3), "n.yaml, line 3"),
        ]
        for (source, from) in sources {
            let error = #expect(throws: SettingError.self) {
                try refusal.key.entry(of: [(refusal.text, source)], from: source)
            }
            #expect(
                error?.description == """
                    setting \(setting.name) (from \(from)): \(refusal.says); \
                    allowed: \(refusal.allowed)
                    """)
        }
    }

    @Test("Every kind of setting has an error in this table")
    func everyKindIsRefused() {
        let refused = Set(Self.refusals.map { $0.key.setting.kind.placeholder })
        for setting in Setting.table where setting.kind.choices.isEmpty {
            #expect(refused.contains(setting.kind.placeholder), "\(setting.name)")
        }
    }

    @Test("A refused text cannot break the line or fill the screen")
    func textIsQuoted() {
        let text = "a\n\u{1B}[2J\"" + String(repeating: "x", count: 1000)
        let error = #expect(throws: SettingError.self) {
            try Setting.node.loops.entry(of: [(text, .flag("--loops"))], from: .flag("--loops"))
        }
        let line = error?.description ?? ""
        #expect(line.contains(#""a\n\u{1B}[2J\"xxx"#))
        #expect(!line.contains("\n") && !line.contains("\u{1B}") && line.count < 250)
    }
}
