import Foundation
import Harness
import Synchronization
import Testing
import Trials

extension Outside {
    /// Third-party origins: whichever of nginx, Apache httpd, Python and HAProxy are installed.
    ///
    /// `NUTHATCH_LONG=1` fetches 10,000 images from each, otherwise it is a few hundred.
    @Suite("Real origins", .serialized)
    struct RealOriginTests {
        private static let count = Trials.count(300, long: 10_000)
        static let installed = RealOrigin.Server.allCases.filter(\.isInstalled)

        @Test(
            "Every image arrives byte for byte, by one fetch, with keep-alive and without",
            .enabled(if: !installed.isEmpty, "none of them is installed"),
            arguments: installed)
        func everyImage(_ server: RealOrigin.Server) throws {
            let folder = try ImageFolder(count: Self.count)
            for keepsAlive in [true, false] {
                let origin = try RealOrigin(server, serving: folder.path, keepsAlive: keepsAlive)
                // Less memory than the images need, so that eviction is included.
                let node = try NodeProcess(["--memory-limit", "16MiB"])
                let wrong = try fetchAll(of: folder, from: origin, through: node)
                #expect(wrong == [], "\(server), keep-alive \(keepsAlive)")
                let fetched = node.metric("nuthatch_origin_fetches_total{result=\"ok\"}")
                #expect(fetched == Double(folder.images.count))
                #expect(node.metric("nuthatch_origin_fetches_total{result=\"failed\"}") == 0)
                #expect(node.metric("nuthatch_waiters") == 0)
                withExtendedLifetime(origin) {}
            }
        }

        /// Returns the names of the images that did not arrive complete, at most ten.
        private func fetchAll(
            of folder: ImageFolder, from origin: RealOrigin, through node: NodeProcess
        ) throws -> [String] {
            let (images, port, nodePort) = (folder.images, origin.port, node.port)
            let wrong = Mutex<[String]>([])
            let next = Atomic<Int>(0)
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                guard let connection = try? HTTPConnection(port: nodePort) else { return }
                while true {
                    let number = next.add(1, ordering: .relaxed).oldValue
                    guard number < images.count else { return }
                    let image = images[number]
                    let url = "http://127.0.0.1:\(port)/\(ImageFolder.name(of: image))"
                    let response = try? connection.get(
                        ImageRequestTarget.forURL(url), expecting: image)
                    if response?.matches(image) != true {
                        wrong.withLock {
                            if $0.count < 10 {
                                $0.append("\(image): \(String(describing: response))")
                            }
                        }
                    }
                }
            }
            return wrong.withLock { $0 }
        }
    }
}
