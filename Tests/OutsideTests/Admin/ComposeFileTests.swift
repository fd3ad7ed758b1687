import Foundation
import Harness
import Testing

extension Outside {
    /// What the Compose file, and the files that it gives to its services, say of each other.
    @Suite("The Compose file and the files that it mounts")
    struct ComposeFileTests {
        private let deploy = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "deploy")

        private func text(_ path: String) throws -> String {
            try String(contentsOf: deploy.appending(path: path), encoding: .utf8)
        }

        /// The paths beside the Compose file that it mounts read-only, and where.
        private func mounts() throws -> [String: String] {
            let matches = try text("compose.yaml").matches(of: /\.\/([\w.\/-]+):(\/[\w.\/-]+):ro/)
            return Dictionary(
                matches.map { (String($0.output.1), String($0.output.2)) },
                uniquingKeysWith: { first, _ in first })
        }

        @Test("Every mounted file exists")
        func files() throws {
            let mounts = try mounts()
            #expect(mounts.count >= 7)
            for path in mounts.keys {
                let file = deploy.appending(path: path).path
                #expect(FileManager.default.fileExists(atPath: file), "\(path)")
            }
        }

        @Test("Grafana finds the dashboard, and the dashboard the kind of its data source")
        func grafana() throws {
            let place = try #require(try mounts()["grafana/dashboard.json"])
            let folder = place[..<(try #require(place.lastIndex(of: "/")))]
            #expect(try text("compose/observe/dashboards.yaml").contains("path: \(folder)}"))
            #expect(try text("compose.yaml").contains("HOME_DASHBOARD_PATH: \(place)\n"))
            let sources = try text("compose/observe/datasources.yaml")
            #expect(sources.contains("type: prometheus\n"))
            #expect(sources.contains("url: http://prometheus:9090\n"))
            #expect(sources.contains("url: http://alertmanager:9093\n"))
        }

        @Test(
            "Prometheus accepts its configuration, with the rules beside it",
            .enabled(if: (try? Program.find("promtool")) != nil))
        func prometheus() throws {
            let folder = try TemporaryFolder()
            let token = try folder.write("0123456789abcdef\n", to: "token")
            let file = try folder.write(
                try text("compose/observe/prometheus.yml")
                    .replacing("/run/secrets/read-token", with: token.path), to: "prometheus.yml")
            // The rules are looked for beside the configuration, as they are mounted.
            let mounts = try mounts()
            #expect(mounts["compose/observe/prometheus.yml"] == "/etc/prometheus/prometheus.yml")
            #expect(mounts["grafana/rules.yaml"] == "/etc/prometheus/rules.yaml")
            try folder.write(try text("grafana/rules.yaml"), to: "rules.yaml")
            let check = try Program.run(
                try Program.find("promtool"), ["check", "config", file.path])
            let output = String(decoding: check.output, as: UTF8.self)
            #expect(check.status == 0, "\(output) \(check.errors)")
            #expect(output.contains("1 rule files found"), "\(output)")
            // The rules select the job by its name; all nodes of the front are scraped.
            let configuration = try text("compose/observe/prometheus.yml")
            #expect(configuration.contains("job_name: nuthatch\n"))
            let front = try text("compose/front/haproxy.cfg")
            #expect(front.contains("server-template slot- 1-64 nuthatch:8081\n"))
            #expect(configuration.matches(of: /nuthatch-nuthatch-\d+/).count == 64)
        }
    }
}
