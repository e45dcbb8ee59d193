// Consume, transform, produce, in transactions: what nemesis/transactor.py does, with Java's clients. Run from its source.
// Arguments: bootstrap, source, target, file of notes, options. One process has several transactors, each a thread.

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.zip.CRC32;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Transactor implements Runnable {
    static final String GROUP = "transactors";
    static final int TRANSACTORS = 3;
    static final int ABORT_EVERY = 12;
    static final int ABANDON_EVERY = 90;
    static final Duration PATIENCE = Duration.ofSeconds(20);
    static volatile boolean isOver = false;

    /** This producer cannot go on; a new one of the same name can. */
    static class GivenUp extends RuntimeException {
        GivenUp(String reason) {
            super(reason);
        }
    }

    private final String bootstrap;
    private final String source;
    private final String target;
    private final String name;
    private final PrintWriter notes;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private int count = 0;

    Transactor(String bootstrap, String source, String target, String name, int recordsMax, PrintWriter notes) {
        this.bootstrap = bootstrap;
        this.source = source;
        this.target = target;
        this.name = name;
        this.notes = notes;
        Properties settings = common();
        settings.put("group.id", GROUP);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", "30000");
        settings.put("max.poll.records", String.valueOf(recordsMax));
        settings.put("fetch.max.wait.ms", "100");
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("client.id", name);
        settings.put("reconnect.backoff.max.ms", "500");
        settings.put("retry.backoff.ms", "50");
        settings.put("retry.backoff.max.ms", "500");
        return settings;
    }

    private KafkaProducer<byte[], byte[]> newProducer() {
        Properties settings = common();
        settings.put("transactional.id", name);
        settings.put("transaction.timeout.ms", "30000");
        settings.put("delivery.timeout.ms", "30000");
        settings.put("request.timeout.ms", "5000");
        settings.put("linger.ms", "5");
        settings.put("max.block.ms", "20000");
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    static byte[] transformed(byte[] value) {
        CRC32 checksum = new CRC32();
        checksum.update(value);
        String text = new String(value, StandardCharsets.UTF_8);
        return String.format("%s|%08x", text, checksum.getValue()).getBytes(StandardCharsets.UTF_8);
    }

    private void note(String kind, int records, String text) {
        String clean = text == null ? "" : text.replace("\\", "/").replace("\"", "'").replaceAll("\\p{Cntrl}", " ");
        synchronized (notes) {
            notes.printf("[%.6f, \"%s\", %d, \"%s: %s\"]%n", System.nanoTime() / 1e9, kind, records, name, clean);
            notes.flush();
        }
    }

    @Override
    public void run() {
        consumer.subscribe(List.of(source));
        while (!isOver) {
            KafkaProducer<byte[], byte[]> producer = newProducer();
            try {
                insist(producer::initTransactions);
                serve(producer);
            } catch (KafkaException | GivenUp reason) {
                note("given up", 0, reason.toString());
                rewind();
            } finally {
                producer.close(Duration.ZERO);
            }
        }
        consumer.close();
        note("left", 0, "");
    }

    private void serve(KafkaProducer<byte[], byte[]> producer) {
        while (!isOver) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(200));
            if (records.isEmpty()) {
                continue;
            }
            count++;
            if (count % ABANDON_EVERY == 0) {
                write(producer, records);
                producer.flush();
                note("aborted", records.count(), "abandoned");
                throw new GivenUp("a crash in the middle of a transaction");
            }
            boolean isCommitted = false;
            try {
                isCommitted = transact(producer, records);
            } catch (KafkaException failure) {
                note("failed", records.count(), failure + " because of " + failure.getCause());
                // Fails in turn for who cannot go on.
                insist(producer::abortTransaction);
            }
            note(isCommitted ? "committed" : "aborted", records.count(), "");
            if (!isCommitted) {
                rewind();
            }
        }
    }

    private boolean transact(KafkaProducer<byte[], byte[]> producer, ConsumerRecords<byte[], byte[]> records) {
        write(producer, records);
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            offsets.put(new TopicPartition(source, record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        insist(() -> producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata()));
        if (count % ABORT_EVERY == 0) {
            producer.flush();
            insist(producer::abortTransaction);
            return false;
        }
        insist(producer::commitTransaction);
        return true;
    }

    private void write(KafkaProducer<byte[], byte[]> producer, ConsumerRecords<byte[], byte[]> records) {
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(target, record.partition(), null, transformed(record.value())));
        }
    }

    /** Again for as long as nothing is known but that it took too long. */
    private void insist(Runnable call) {
        while (true) {
            try {
                call.run();
                return;
            } catch (TimeoutException again) {
                note("again", 0, again.toString());
                if (isOver) {
                    throw again;
                }
            }
        }
    }

    /** Read on from what the group has committed. */
    private void rewind() {
        while (!isOver) {
            try {
                Map<TopicPartition, OffsetAndMetadata> committed = consumer.committed(consumer.assignment(), PATIENCE);
                committed.forEach((place, known) -> consumer.seek(place, known == null ? 0 : known.offset()));
                return;
            } catch (KafkaException | IllegalStateException failure) {
                note("rewinding", 0, failure.toString());
            }
        }
    }

    public static void main(String[] arguments) throws IOException, InterruptedException {
        String digits = arguments[4].replaceAll(".*\"records_max\": *(\\d+).*", "$1");
        try (BufferedWriter out = Files.newBufferedWriter(Path.of(arguments[3]))) {
            PrintWriter notes = new PrintWriter(out);
            List<Thread> threads = new ArrayList<>();
            for (int number = 0; number < TRANSACTORS; number++) {
                String name = "t" + number;
                Runnable one =
                    new Transactor(arguments[0], arguments[1], arguments[2], name, Integer.parseInt(digits), notes);
                Thread thread = new Thread(one, name);
                // A transactor that fails otherwise takes the process along, and the run with it.
                thread.setUncaughtExceptionHandler((which, failure) -> {
                    failure.printStackTrace();
                    Runtime.getRuntime().halt(1);
                });
                threads.add(thread);
                thread.start();
            }
            while (System.in.read() >= 0) {
                // Until the input is closed.
            }
            isOver = true;
            for (Thread thread : threads) {
                thread.join();
            }
            notes.printf("[%.6f, \"end\", 0, []]%n", System.nanoTime() / 1e9);
            notes.flush();
        }
        System.exit(0);
    }
}
