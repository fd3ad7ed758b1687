import Ground
import NodeConfiguration
import Telemetry
import Testing

@Suite("Changing the settings of a running node")
struct ConfigurationChangeTests {
    private func change(
        _ before: String, _ after: String
    ) throws -> (configuration: Configuration, change: ConfigurationChange) {
        try resolve(file: before).changed(to: try resolve(file: after))
    }

    /// A value of the setting other than its default.
    private static func other(than setting: Setting) -> String {
        let kind = setting.kind
        if let word = kind.choices.first(where: { !setting.defaults.contains($0) }) { return word }
        if setting == Setting.disk.diskLimit.setting { return "1GiB" }
        let bounds = kind.allowed.replacing(" or off", with: "").split(separator: "…")
        switch kind.noun {
        case "a size": return String(bounds[0])
        case "a duration", "a number": return String(bounds[1])
        case "an address and port": return "127.0.0.1:9"
        default: return setting.example
        }
    }

    /// A file without the setting and one with it, each with the settings it requires.
    private static func files(_ setting: Setting, _ value: String) -> (String, String) {
        var lines: [String: String] = [:]
        if TLSSection.settings.contains(setting) {
            lines = ["tls-certificate": "/before.pem", "tls-key": "/before.key"]
        } else if ClusterSection.settings.contains(setting) {
            lines = ["cluster-secret-file": "/before"]
        }
        let text = { lines.map { "\($0.key): '\($0.value)'\n" }.sorted().joined() }
        let before = text()
        lines[setting.name] = value
        return (before, text())
    }

    @Test("Each setting changes live, or is reported as needing a restart and stays")
    func eachSetting() throws {
        for setting in Setting.table where setting.name != "config" {
            let value = Self.other(than: setting)
            let (before, next) = Self.files(setting, value)
            let (kept, change) = try change(before, next)
            let named = (setting.needsRestart ? change.awaitingRestart : change.live)
                .first { $0.setting == setting }
            let others = setting.needsRestart ? change.live : change.awaitingRestart
            #expect(named?.after == value && named?.before != value, "\(setting.name)")
            #expect(others.isEmpty, "\(setting.name): \(others)")
            // After adopting the file, a second reload changes nothing.
            let again = try kept.changed(to: try resolve(file: next)).change
            #expect(again.live.isEmpty, "\(setting.name)")
            #expect(again.awaitingRestart == change.awaitingRestart, "\(setting.name)")
            #expect(try kept.changed(to: kept).change.isEmpty, "\(setting.name)")
        }
    }

    @Test("TLS can be neither enabled nor disabled in a running node")
    func switchedTLS() throws {
        let tls = "tls-certificate: /a.pem\ntls-key: /a.key\n"
        #expect(throws: ConfigurationErrors.self) { try change("", tls) }
        let error = #expect(throws: ConfigurationErrors.self) { try change(tls, "") }
        #expect(error?.first == .tlsToggled(off: true))
        let other = "tls-certificate: /b.pem\ntls-key: /b.key\n"
        #expect(try change(tls, other).1.live.count == 2)
    }

    @Test("Settings that need a restart keep their value while others change")
    func kept() throws {
        let (kept, change) = try change(
            "listen: 127.0.0.1:1\nloops: 2\nranges-limit: 3\n",
            "listen: 127.0.0.1:2\nranges-limit: 4\nidle-timeout: 1s\n")
        #expect(kept.listen.map(\.description) == ["127.0.0.1:1"] && kept.loops == 2)
        #expect(kept.rangesLimit == 4 && kept.idleTimeout == .seconds(1))
        #expect(
            change.live.map(\.description) == ["ranges-limit 3 -> 4", "idle-timeout 60s -> 1s"]
                || change.live.map(\.description) == [
                    "ranges-limit 3 -> 4", "idle-timeout 1m -> 1s",
                ])
        #expect(
            change.awaitingRestart.map(\.description) == [
                "listen 127.0.0.1:1 -> 127.0.0.1:2", "loops 2 -> 0",
            ])
    }

    @Test("A default that follows another setting is listed as changed, too")
    func followers() throws {
        let (_, change) = try change("", "memory-limit: 32MiB\n")
        #expect(change.live.map(\.setting.name) == ["memory-limit", "object-limit"])
        #expect(change.live.last?.description == "object-limit 64MiB -> 32MiB")
    }

    @Test("Validation uses the values kept: a node open to others always needs its origins")
    func heldAgainstKept() throws {
        let open = try resolve(file: "listen: 0.0.0.0:80\nallow-origin: a.example\n")
        let closed = try resolve(file: "listen: 127.0.0.1:80\n")
        #expect(closed.allowOrigin.map(\.description) == ["*"])
        let faults = #expect(throws: ConfigurationErrors.self) { try open.changed(to: closed) }
        #expect(faults?.first.description.contains("has 0.0.0.0:80, which is beyond") == true)
        let configured = try resolve(file: "listen: 127.0.0.1:80\nallow-origin: b.example\n")
        #expect(try open.changed(to: configured).configuration.listen == open.listen)
    }

    @Test("Lists are shown whole, empty ones as none, long ones from the first difference")
    func lists() throws {
        let few = try change("allow-private-origin: [10.0.0.0/8, 127.0.0.0/8]", "").change
        #expect(
            few.live.map(\.description) == [
                "allow-private-origin 10.0.0.0/8 127.0.0.0/8 -> none"
            ])
        let hosts = (0..<100).map { "h\($0).example" }
        let many = "allow-origin: [\(hosts.joined(separator: ", "))]\n"
        let item = try change(many, many.replacing("h90.", with: "g90.")).change.live.first
        #expect(item?.before.hasPrefix("h90.example h91.example") == true)
        #expect(item?.after.hasPrefix("g90.example") == true)
        #expect(item?.after.hasSuffix("h97.example and 92 more") == true)
    }

    @Test("All errors are reported in the order of the table, unknown keys first")
    func everyFault() {
        let file = "ranges-limit: 0\nlops: 1\nloops: x\nallow-origin: a/b\nconfig: y\n"
        let starts = [
            "\"lops\" (from n.yaml, line 2)", "setting config (from n.yaml, line 5)",
            "setting loops (from n.yaml, line 3)",
            "setting disk-threads (from flag --disk-threads)",
            "setting allow-origin (from n.yaml, line 4)",
            "setting ranges-limit (from n.yaml, line 1)",
        ]
        let lines = faults(file, flags: ["disk-threads": ["none"]])
        #expect(lines.count == starts.count, "\(lines)")
        for (line, start) in zip(lines, starts) { #expect(line.hasPrefix(start), "\(line)") }
        let conflicts = "object-limit: 1GiB\nurl-limit: 64KiB\ndisk-limit: 1MiB\n"
        #expect(faults(conflicts).count == 3)
    }
}
