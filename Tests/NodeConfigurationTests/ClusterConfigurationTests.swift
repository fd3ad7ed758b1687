import Cluster
import Foundation
import Ground
import NodeConfiguration
import Telemetry
import Testing

@Suite("Settings of the cluster")
struct ClusterConfigurationTests {
    /// The settings loaded with a secrets file of this text, or without one, and the errors as
    /// lines.
    private func load(
        _ secrets: String?, _ flags: [String: [String]] = [:]
    ) throws -> (configuration: Configuration?, lines: [String]) {
        try loadSettings(secrets) { path in
            secrets == nil ? flags : flags.merging(["cluster-secret-file": [path]]) { $1 }
        }
    }

    private static let secret = "0123456789abcdef0123456789abcdef"

    @Test("There is one secret a line, several for rotation, and comments are skipped")
    func secrets() throws {
        let other = String(repeating: "é", count: 16)
        for text in [
            Self.secret, Self.secret + "\n", Self.secret + "\r\n\n" + other + "\n",
            "# since May\n\(Self.secret)\n", Self.secret + String(repeating: "x", count: 992),
        ] {
            #expect(try load(text).configuration?.clusterSecrets != nil, "\(text)")
        }
    }

    @Test(
        "An invalid secret stops the start with its line",
        arguments: [
            ("", "it contains 0 secrets"), ("#\n\n", "it contains 0 secrets"),
            ("0123456789abcdef0123456789abcde\n", "line 1 has 31 bytes"),
            (secret + "\nshort", "line 2 has 5 bytes"),
            (String(repeating: "x", count: 1025), "line 1 has 1025 bytes"),
            (String(repeating: secret + "\n", count: 17), "it contains 17 secrets"),
        ])
    func faults(text: String, why: String) throws {
        #expect(
            try load(text).lines == [
                "setting cluster-secret-file: \"PATH\" cannot be used: \(why); "
                    + "allowed: a file of 1 to 16 lines, each a secret of 32 to 1024 bytes"
            ])
    }

    @Test("Addresses are host names or IP addresses with their port")
    func addresses() throws {
        let flags = [
            "join": ["nuthatch:8082", "[2001:DB8::1]:1"], "peer-advertise": ["Node-1.example:9"],
            "peer-listen": ["0.0.0.0:8082"],
        ]
        let configuration = try #require(try load(Self.secret, flags).configuration)
        #expect(configuration.join.map(\.description) == ["nuthatch:8082", "[2001:db8::1]:1"])
        #expect(configuration.peerAdvertise?.description == "node-1.example:9")
        #expect(configuration.peerListen.description == "0.0.0.0:8082")
    }

    @Test("Without a secret the other cluster settings stop the start")
    func alone() throws {
        for name in ["join", "peer-advertise"] {
            #expect(
                try load(nil, [name: ["a:1"]]).lines == [
                    "setting \(name) (from flag --\(name)) has no effect without a secret; "
                        + "allowed: together with cluster-secret-file"
                ])
        }
        let listening = try #require(try load(nil, ["peer-listen": ["0.0.0.0:1"]]).configuration)
        #expect(
            listening.warnings == [
                "setting peer-listen (from flag --peer-listen) has no effect without setting "
                    + "cluster-secret-file"
            ])
        #expect(try load(nil).configuration?.clusterSecrets == nil)
    }

    @Test("The settings that nodes compare are those of the guide, and none names a secret")
    func shared() throws {
        let page = try String(
            contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
                .deletingLastPathComponent().deletingLastPathComponent()
                .appending(path: "Sources/nuthatch/nuthatch.docc/Clusters.md"), encoding: .utf8)
        let section = page.components(separatedBy: "## Settings\n")[1]
            .components(separatedBy: "must be the same on all nodes")[0]
        let named = section.matches(of: /`--([a-z-]+)`/).map { String($0.1) }
        #expect(named == Setting.table.filter(\.isSameOnAllNodes).map(\.name))
        #expect(
            named.allSatisfy { Setting.named($0)?.kind.completion == SettingKind.Completion.none })
    }

    @Test("What nodes compare follows from the values, however they were given")
    func comparison() throws {
        let one = try #require(try load(Self.secret, ["join": ["a:1", "B:2"]]).configuration)
        let other = try #require(
            try load(Self.secret, ["join": ["b:2", "a:1"], "fence": ["10000ms"]]).configuration)
        #expect(one.sharedSettings == other.sharedSettings)
        #expect(one.sharedSettings.first?.text == "a:1 b:2")
        let third = try #require(
            try load(Self.secret, ["join": ["a:1", "b:2"], "replicas": ["3"]]).configuration)
        let differing = zip(one.sharedSettings, third.sharedSettings).filter { $0 != $1 }
        #expect(differing.map(\.0.name) == ["replicas"])
    }

    @Test("The admin port's URL for operators is a URL")
    func advertised() throws {
        let given = ["admin-advertise": ["HTTPS://Node-1.example/nuthatch/"]]
        let configuration = try #require(try load(Self.secret, given).configuration)
        #expect(configuration.adminAdvertise?.description == "https://node-1.example/nuthatch")
        for url in ["node-1.example:8081", "javascript:alert(1)", "http://"] {
            #expect(try load(Self.secret, ["admin-advertise": [url]]).configuration == nil)
        }
    }

    @Test("A running node adopts changed secrets and seeds, and stays in its cluster")
    func reloaded() throws {
        let before = try #require(try load(Self.secret).configuration)
        let next = try #require(try load(Self.secret, ["join": ["a:1"]]).configuration)
        let changed = try before.changed(to: next).configuration
        #expect(changed.clusterSecrets === next.clusterSecrets)
        #expect(changed.join.count == 1)
        let alone = try #require(try load(nil).configuration)
        for (from, to, isOff) in [(before, alone, true), (alone, before, false)] {
            let error = #expect(throws: ConfigurationErrors.self) { try from.changed(to: to) }
            #expect(error?.first == .clusterToggled(off: isOff))
        }
    }
}
