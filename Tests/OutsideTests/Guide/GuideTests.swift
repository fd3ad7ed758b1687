import Foundation
import Harness
import Synchronization
import Testing

extension Outside {
    @Suite("README and the guide do what they say")
    struct GuideTests {
        /// README, then the pages of all catalogs, from the top of the repository.
        static let pages: [String] = {
            let sources = PageSession.top.appending(path: "Sources")
            let paths = FileManager.default.enumerator(atPath: sources.path)?
                .compactMap { $0 as? String }
            return ["README.md"]
                + (paths ?? []).filter { $0.contains(".docc/") && $0.hasSuffix(".md") }.sorted()
                .map { "Sources/" + $0 }
        }()

        private static func text(_ page: String) throws -> GuideText {
            try GuideText(
                String(contentsOf: PageSession.top.appending(path: page), encoding: .utf8))
        }

        /// The pages that were run, several at once: they wait more than they compute.
        private static let sessions: [String: Result<PageSession, any Error>] = {
            let sessions = Mutex<[String: Result<PageSession, any Error>]>([:])
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 2 * ProcessInfo.processInfo.activeProcessorCount
            queue.isSuspended = true
            let steps = pages.map { page in (page, (try? text(page).steps) ?? []) }
            for (page, steps) in steps.sorted(by: { $0.1.count > $1.1.count }) {
                queue.addOperation {
                    let outcome = Result { try PageSession(running: steps) }
                    sessions.withLock { $0[page] = outcome }
                }
            }
            queue.isSuspended = false
            queue.waitUntilAllOperationsAreFinished()
            return sessions.withLock { $0 }
        }()

        @Test("There are pages, and steps on them")
        func areFound() throws {
            #expect(Self.pages.count > 30)
            #expect(try Self.pages.map { try Self.text($0).steps.count }.reduce(0, +) > 100)
        }

        @Test("Each block of a page can be run, or says why not", arguments: pages)
        func areMarked(page: String) throws {
            _ = try Self.text(page)
        }

        @Test(
            "Each block of a page does what the page says",
            .enabled(if: PageSession.isPossible), arguments: pages)
        func run(page: String) throws {
            let session = try #require(try Self.sessions[page]?.get())
            for fault in session.faults { Issue.record("\(page), \(fault)") }
            if !session.skipped.isEmpty {
                print("\(page): not run without programs: \(session.skipped)")
            }
        }

        @Test("Suites that a page names exist")
        func suites() throws {
            let tests = PageSession.top.appending(path: "Tests")
            let names = Set(
                (FileManager.default.enumerator(atPath: tests.path)?
                    .compactMap { $0 as? String } ?? [])
                    .map { URL(filePath: $0).deletingPathExtension().lastPathComponent })
            for page in Self.pages {
                let text = try String(
                    contentsOf: PageSession.top.appending(path: page), encoding: .utf8)
                for match in text.matches(of: /\b[A-Z][A-Za-z0-9]*Tests\b/) {
                    #expect(names.contains(String(match.output)), "\(page): \(match.output)")
                }
            }
        }

        @Test("A block of Swift is a part of a test")
        func swift() throws {
            let tests = PageSession.top.appending(path: "Tests")
            let files =
                FileManager.default.enumerator(atPath: tests.path)?
                .compactMap { $0 as? String }.filter { $0.hasSuffix(".swift") } ?? []
            let texts = try files.map {
                try String(contentsOf: tests.appending(path: $0), encoding: .utf8)
            }
            for page in Self.pages {
                for block in try Self.text(page).swift {
                    #expect(texts.contains { $0.contains(block.text) }, "\(page): \(block.line)")
                }
            }
        }
    }
}
