import Foundation
import Harness
import Testing

extension Outside {
    /// The recipes that need only Python and a node; `deploy/recipes/try` runs the others too.
    @Suite("Recipes do what they say", .enabled(if: (try? Program.find("python3")) != nil))
    struct RecipeTests {
        private let folder = PageSession.top.appending(path: "deploy/recipes")

        /// Runs a trial, and returns what it printed; records its errors if it failed.
        private func run(_ trial: String, _ arguments: String..., seconds: Double = 300) throws
            -> String
        {
            let result = try Program.run(
                try Program.find("python3"), [folder.appending(path: trial).path] + arguments,
                environment: [
                    "NUTHATCH_NODE": try NodeProcess.binary(), "PYTHONDONTWRITEBYTECODE": "1",
                ], seconds: seconds)
            let output = String(decoding: result.output, as: UTF8.self)
            #expect(result.status == 0, "\(output)\(result.errors)")
            return output
        }

        @Test("WordPress' and Drupal's plug-ins purge what they should, and nothing else")
        func plugins() throws {
            #expect(try run("plugins/try.py").split(separator: "\n").count > 15)
        }

        @Test("A purge of an original covers every size of imgproxy and Next.js")
        func images() throws {
            #expect(try run("images/try.py").contains("stand-in for next.js"))
        }

        @Test("The converter for nginx makes valid settings, and names what it leaves out")
        func conversion() throws {
            #expect(try run("nginx/try.py").split(separator: "\n").count == 3)
        }

        @Test("Signing in TypeScript, Go and Swift is the same as nuthatch sign")
        func signing() throws {
            let output = try run("signing.py", "sign.ts", "sign.go", "Sign.swift")
            for line in output.split(separator: "\n") where line.contains("skipped") {
                print("\(line)")
            }
        }
    }
}
