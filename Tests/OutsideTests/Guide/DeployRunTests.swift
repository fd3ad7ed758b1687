import Foundation
import Harness
import Testing

extension Outside {
    @Suite("deploy/run where something is missing")
    struct DeployRunTests {
        /// Runs `deploy/run` with nothing in PATH but what it needs, and `programs`, which are
        /// shell scripts by name.
        private func run(_ programs: [String: String]) throws -> ProgramResult {
            let folder = try TemporaryFolder()
            for name in ["bash", "env", "dirname", "sed", "head", "uname"] {
                try FileManager.default.createSymbolicLink(
                    atPath: folder.appending(path: name).path,
                    withDestinationPath: Program.find(name))
            }
            for (name, script) in programs {
                let file = try folder.write("#!/bin/sh\n\(script)\n", to: name)
                try FileManager.default.setAttributes(
                    [.posixPermissions: 0o755], ofItemAtPath: file.path)
            }
            return try Program.run(
                PageSession.top.appending(path: "deploy/run").path, [],
                environment: ["PATH": folder.path])
        }

        @Test("Without Swift it says where to get it, and nothing else")
        func withoutSwift() throws {
            let result = try run([:])
            #expect(result.status == 1 && result.output.isEmpty)
            #expect(
                result.errors == """
                    deploy/run: Swift 6.3 or newer is required, found none in PATH
                    deploy/run: get it from https://www.swift.org/install/linux/

                    """)
        }

        @Test("Without Swift, where Docker works, it offers the container")
        func withDocker() throws {
            let result = try run(["docker": "[ \"$1\" = version ]"])
            #expect(result.status == 1)
            let lines = result.errors.split(separator: "\n").map(String.init)
            #expect(lines.count == 5 && lines[1].contains("https://www.swift.org/install/linux/"))
            #expect(lines.dropFirst(2).first?.contains("Docker") == true)
            // The commands are those of the guide.
            let page = try String(
                contentsOf: PageSession.top.appending(
                    path: "Sources/nuthatch/nuthatch.docc/Containers.md"), encoding: .utf8)
            for line in lines.suffix(2) {
                #expect(page.contains(line.trimmingCharacters(in: .whitespaces)), "\(line)")
            }
        }

        @Test("Where Docker's daemon cannot be asked, no container is offered")
        func withoutDaemon() throws {
            let result = try run(["docker": "exit 1"])
            #expect(result.status == 1 && !result.errors.contains("docker"))
        }

        @Test("An older Swift is named, with where to get a newer one")
        func olderSwift() throws {
            let result = try run(["swift": "echo 'Swift version 6.1.2 (swift-6.1.2-RELEASE)'"])
            #expect(result.status == 1)
            #expect(
                result.errors.hasPrefix("deploy/run: Swift 6.3 or newer is required, found 6.1.2\n")
            )
            #expect(result.errors.contains("https://www.swift.org/install/linux/"))
        }
    }
}
