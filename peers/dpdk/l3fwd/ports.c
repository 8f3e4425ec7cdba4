/* A driver for l3fwd's ports net_bed0, net_bed1, …: packets arrive from the bed at number 0 and leave to it by the others.
 * It offers what network cards offer: it verifies checksums on receipt and reports packet types. Its packet buffers are in
 * l3fwd's own pool; as a card has a ring of descriptors, it takes them all at the start and uses them in turn. */
#include <stdio.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>

#include "../../bed/bed.h"
#include "../../bed/frames.h"
#include "../mbufs.h"

struct port {
	uint16_t number;
	struct rte_ether_addr address;
};

/* A variable of l3fwd: its loop ends when a signal or the bed sets it. */
extern volatile bool force_quit;

static uint16_t take_in(void *queue, struct rte_mbuf **packets, uint16_t room)
{
	(void)queue;
	return bed_rx_burst((void **)packets, room);
}

static uint16_t take_nothing_in(void *queue, struct rte_mbuf **packets, uint16_t room)
{
	(void)queue, (void)packets, (void)room;
	return 0;
}

static uint16_t send_out(void *queue, struct rte_mbuf **packets, uint16_t count)
{
	bed_tx_burst(((const struct port *)queue)->number, (void **)packets, count);
	return count;
}

static int configure(struct rte_eth_dev *device)
{
	(void)device;
	return 0;
}

static int start(struct rte_eth_dev *device)
{
	device->data->dev_link.link_status = RTE_ETH_LINK_UP;
	return 0;
}

static int stop(struct rte_eth_dev *device)
{
	device->data->dev_link.link_status = RTE_ETH_LINK_DOWN;
	return 0;
}

/* The address is part of the device's own memory, which DPDK frees separately. */
static int close_port(struct rte_eth_dev *device)
{
	device->data->mac_addrs = NULL;
	return 0;
}

static int update_link(struct rte_eth_dev *device, int wait)
{
	(void)device, (void)wait;
	return 0;
}

static int describe(struct rte_eth_dev *device, struct rte_eth_dev_info *info)
{
	(void)device;
	info->max_mac_addrs = 1;
	info->max_rx_pktlen = UINT32_MAX;
	info->max_rx_queues = 1;
	info->max_tx_queues = 1;
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_CHECKSUM;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	return 0;
}

static const uint32_t *packet_types(struct rte_eth_dev *device)
{
	static const uint32_t types[] = {
		RTE_PTYPE_L2_ETHER, RTE_PTYPE_L3_IPV4_EXT_UNKNOWN, RTE_PTYPE_L3_IPV6_EXT_UNKNOWN, RTE_PTYPE_UNKNOWN,
	};

	(void)device;
	return types;
}

static int set_up_receive(struct rte_eth_dev *device, uint16_t queue, uint16_t descriptors, unsigned socket,
			  const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct port *port = device->data->dev_private;

	(void)descriptors, (void)socket, (void)conf;
	if (port->number == 0)
		lend_mbufs(pool, buffers_of_bed());
	device->data->rx_queues[queue] = port;
	return 0;
}

static int set_up_send(struct rte_eth_dev *device, uint16_t queue, uint16_t descriptors, unsigned socket,
		       const struct rte_eth_txconf *conf)
{
	(void)descriptors, (void)socket, (void)conf;
	device->data->tx_queues[queue] = device->data->dev_private;
	return 0;
}

static const struct eth_dev_ops operations = {
	.dev_configure = configure,
	.dev_start = start,
	.dev_stop = stop,
	.dev_close = close_port,
	.link_update = update_link,
	.dev_infos_get = describe,
	.dev_supported_ptypes_get = packet_types,
	.rx_queue_setup = set_up_receive,
	.tx_queue_setup = set_up_send,
};

static int probe(struct rte_vdev_device *vdev)
{
	unsigned number;
	struct rte_eth_dev *device;
	struct port *port;

	if (sscanf(rte_vdev_device_name(vdev), "net_bed%u", &number) != 1)
		return -EINVAL;
	if (number == 0)
		bed_open(&(struct bed_router){FRAME_IN_MBUF, NULL, describe_mbufs, length_of_mbuf, &force_quit});
	device = rte_eth_vdev_allocate(vdev, sizeof(*port));
	if (device == NULL)
		return -ENOMEM;
	port = device->data->dev_private;
	port->number = (uint16_t)number;
	port_address(port->number, port->address.addr_bytes);
	device->data->mac_addrs = &port->address;
	device->data->dev_link = (struct rte_eth_link){.link_speed = RTE_ETH_SPEED_NUM_100G,
						       .link_duplex = RTE_ETH_LINK_FULL_DUPLEX};
	device->dev_ops = &operations;
	device->rx_pkt_burst = number == 0 ? take_in : take_nothing_in;
	device->tx_pkt_burst = send_out;
	rte_eth_dev_probing_finish(device);
	return 0;
}

static int remove_port(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *device = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (device == NULL)
		return 0;
	close_port(device);
	return rte_eth_dev_release_port(device);
}

static struct rte_vdev_driver driver = {.probe = probe, .remove = remove_port};

RTE_PMD_REGISTER_VDEV(net_bed, driver);
