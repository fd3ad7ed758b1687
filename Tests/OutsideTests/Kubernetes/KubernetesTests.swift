import Foundation
import Harness
import Testing

extension Outside {
    @Suite("The manifests and the chart for Kubernetes")
    struct KubernetesTests {
        private let deploy = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "deploy")

        private func text(_ path: String) throws -> String {
            try String(contentsOf: deploy.appending(path: path), encoding: .utf8)
        }

        @Test(
            "They are valid for each supported version of Kubernetes, and give the same objects",
            .enabled(if: KubernetesTools.programs != nil, "helm and kubectl cannot be installed"))
        func valid() throws {
            let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
            let programs = try #require(KubernetesTools.programs)
            let folder = try TemporaryFolder()
            let result = try Program.run(
                try #require(KubernetesTools.python),
                [deploy.appending(path: "kubernetes/render").path, "--check"],
                environment: ["PATH": "\(programs):\(path)", "HOME": folder.path], seconds: 120)
            let output = String(decoding: result.output, as: UTF8.self)
            #expect(result.status == 0, "\(output)\(result.errors)")
        }

        @Test("The alert rules are those of deploy/grafana, and the chart's version is the node's")
        func equal() throws {
            let rules = try text("grafana/rules.yaml").split(separator: "\n")
            let manifest = try text("kubernetes/monitoring/prometheusrule.yaml")
            let lines = manifest.split(separator: "\n").drop { $0 != "spec:" }.dropFirst()
            #expect(lines.map { $0.dropFirst(2) } == rules)

            let version = try Program.run(NodeProcess.binary(), ["--version"])
            let printed = String(decoding: version.output, as: UTF8.self)
            let own = try #require(printed.firstMatch(of: /nuthatch (\S+)/)?.1)
            let chart = try text("helm/nuthatch/Chart.yaml")
            #expect(chart.contains("\nappVersion: \(own)\n"), "\(own)")
        }

        @Test(
            "Pods form one cluster, are updated one by one and replaced: no error, no stale image",
            .enabled(
                if: KubernetesTools.python != nil && KubernetesTools.canIsolate,
                "needs root, namespaces, iproute2 and PyYAML"))
        func life() throws {
            let result = try Program.run(
                try #require(KubernetesTools.python),
                [
                    deploy.appending(path: "kubernetes/trial").path, NodeProcess.binary(),
                    "--short", "--seed", "31",
                ], seconds: 240)
            let output = String(decoding: result.output, as: UTF8.self)
            #expect(result.status == 0, "\(output)\(result.errors)")
        }
    }
}
